//! The porting guide shows this driver, and the driver is as small as the guide says.

const GUIDE: &str = include_str!("../../../core/src/porting.md");
const DRIVER: &str = include_str!("../src/driver.rs");

/// Without what depends on the place: indentation and line ends
fn words(code: &str) -> String {
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_guide_s_code_is_the_driver_s() {
    let driver = words(DRIVER);
    let blocks: Vec<&str> =
        GUIDE.split("```rs\n").skip(1).map(|rest| rest.split("```").next().expect("a block ends")).collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        assert!(driver.contains(&words(block)), "not in the driver:\n{block}");
    }
}

#[test]
fn the_guide_s_scenarios_exist() {
    let table = GUIDE.split("# The checklist").nth(1).expect("a checklist");
    let names: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.rsplit('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    assert!(names.len() >= 12, "{names:?}");
    for name in names {
        assert!(steadfast_scenario::find(name).is_some(), "{name}");
    }
}

#[test]
fn the_driver_is_under_two_hundred_lines() {
    let lines = DRIVER.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(lines.count() < 200);
}
