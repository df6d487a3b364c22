//! The house: which way dependencies point, how few the core has, and what compiler they all take.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// Of what is built here: a crate that only other systems need may not have been fetched
fn metadata() -> Value {
    let rustc = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let version = String::from_utf8(rustc.stdout).expect("rustc prints text");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON")
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}

/// Names of the crates that `krate` needs to be built, itself included, tests and build aside
fn needed(metadata: &Value, krate: &str) -> BTreeSet<String> {
    let package =
        |id: &str| list(metadata, "packages").iter().find(|package| text(package, "id") == id).unwrap();
    let node =
        |id: &str| list(&metadata["resolve"], "nodes").iter().find(|node| text(node, "id") == id).unwrap();
    let root = list(metadata, "packages").iter().find(|package| text(package, "name") == krate).unwrap();
    let mut seen = BTreeSet::new();
    let mut next = vec![text(root, "id")];
    while let Some(id) = next.pop() {
        if !seen.insert(id) {
            continue;
        }
        next.extend(
            list(node(id), "deps")
                .iter()
                .filter(|dep| list(dep, "dep_kinds").iter().any(|kind| kind["kind"].is_null()))
                .map(|dep| text(dep, "pkg")),
        );
    }
    seen.into_iter().map(|id| text(package(id), "name").to_owned()).collect()
}

/// Names of the crates that `krate` needs with its default features, itself included
fn tree(krate: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", krate, "--edges", "normal", "--prefix", "none", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("cargo prints text");
    text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn the_core_has_few_dependencies_and_names_no_adapter() {
    let metadata = metadata();
    let needed = needed(&metadata, "steadfast");
    let tree = tree("steadfast");
    assert!(tree.len() <= 20, "{} crates: {tree:?}", tree.len());
    assert!(!needed.iter().any(|name| name.starts_with("steadfast-")), "{needed:?}");
    let core =
        list(&metadata, "packages").iter().find(|package| text(package, "name") == "steadfast").unwrap();
    let direct: BTreeSet<&str> = list(core, "dependencies")
        .iter()
        .filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| text(dependency, "name"))
        .collect();
    let allowed = BTreeSet::from([
        "bytes",
        "fastrand",
        "http",
        "httparse",
        "httpdate",
        "memchr",
        // behind the feature `content-decoding`
        "miniz_oxide",
        "pin-project-lite",
        "serde",
        "serde_json",
        "thiserror",
        // behind the feature `toml`
        "toml",
    ]);
    assert!(direct.is_subset(&allowed), "{direct:?}");
}

#[test]
fn dependencies_point_one_way() {
    let metadata = metadata();
    let ours = |krate: &str| -> BTreeSet<String> {
        needed(&metadata, krate)
            .into_iter()
            .filter(|name| name.starts_with("steadfast") && name != krate)
            .collect()
    };
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(ours("steadfast"), set(&[]));
    assert_eq!(ours("steadfast-tls"), set(&["steadfast"]));
    assert_eq!(ours("steadfast-driver"), set(&["steadfast", "steadfast-tls"]));
    assert_eq!(ours("steadfast-observe"), set(&["steadfast"]));
    // With the features by which a client is observed
    let async_client = ["steadfast", "steadfast-tls", "steadfast-driver", "steadfast-observe"];
    assert_eq!(ours("steadfast-tokio"), set(&async_client));
    assert_eq!(ours("steadfast-smol"), set(&async_client));
    assert_eq!(ours("steadfast-blocking"), set(&["steadfast", "steadfast-tls", "steadfast-observe"]));
    // The scripted server shares no code with what it tests.
    assert_eq!(ours("steadfast-scenario"), set(&[]));
    assert_eq!(ours("steadfast-mock"), set(&["steadfast-scenario"]));
    assert_eq!(ours("steadfast-sim"), set(&["steadfast", "steadfast-scenario"]));
    let suite = ["steadfast", "steadfast-scenario", "steadfast-mock", "steadfast-sim"];
    assert_eq!(ours("steadfast-suite"), set(&suite));
    for (krate, runtimes) in [
        ("steadfast-driver", ["tokio", "smol"].as_slice()),
        ("steadfast-tokio", &["smol", "async-io"]),
        ("steadfast-smol", &["tokio", "mio"]),
    ] {
        let needed = needed(&metadata, krate);
        assert!(!runtimes.iter().any(|runtime| needed.contains(*runtime)), "{krate}: {needed:?}");
    }
}

#[test]
fn the_blocking_client_has_nothing_async_in_it() {
    let needed = needed(&metadata(), "steadfast-blocking");
    let is_async = |name: &&String| {
        ["tokio", "futures", "async", "smol", "pollster"].iter().any(|word| name.starts_with(word))
    };
    assert_eq!(needed.iter().filter(is_async).collect::<Vec<_>>(), Vec::<&String>::new());
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../adapters/blocking/src");
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for line in code {
            for word in ["async ", ".await", "Future", "std::task"] {
                assert!(!line.contains(word), "{line}");
            }
        }
    }
}

#[test]
fn every_dependency_takes_the_compiler_that_we_promise() {
    let metadata = metadata();
    let version = |text: &str| {
        let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
        [(); 3].map(|()| parts.next().unwrap_or(0u32))
    };
    let core =
        list(&metadata, "packages").iter().find(|package| text(package, "name") == "steadfast").unwrap();
    let promised = text(core, "rust_version");
    assert_eq!(promised, "1.88");
    let promising = ["", "-tokio", "-smol", "-blocking", "-mock", "-cli"];
    for krate in promising.map(|name| format!("steadfast{name}")) {
        let needed = needed(&metadata, &krate);
        for package in
            list(&metadata, "packages").iter().filter(|package| needed.contains(text(package, "name")))
        {
            let wants = text(package, "rust_version");
            assert!(
                version(wants) <= version(promised),
                "{} needs Rust {wants}, and {krate} promises {promised}",
                text(package, "name")
            );
        }
    }
}

#[test]
fn every_crate_of_ours_forbids_unsafe_code_and_names_its_licence() {
    let metadata = metadata();
    let members = list(&metadata, "workspace_members");
    let ours = list(&metadata, "packages").iter().filter(|package| members.contains(&package["id"]));
    let mut count = 0;
    for package in ours {
        let manifest = std::fs::read_to_string(text(package, "manifest_path")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{}", text(package, "name"));
        assert_eq!(text(package, "license"), "MIT OR Apache-2.0");
        count += 1;
    }
    assert!(count >= 9, "{count}");
    let root = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml")).unwrap();
    assert!(root.contains("unsafe_code = \"forbid\""));
}

/// One member that asked for it would give it to the whole workspace's tests
#[test]
fn nothing_plants_a_fault_unless_it_is_asked_to() {
    const FEATURE: &str = "planted-faults";
    let metadata = metadata();
    let members = list(&metadata, "workspace_members");
    let ours = list(&metadata, "packages").iter().filter(|package| members.contains(&package["id"]));
    let names = |value: &Value| value.as_str().is_some_and(|name| name.contains(FEATURE));
    let mut with_it = BTreeSet::new();
    for package in ours {
        let name = text(package, "name");
        for (feature, turns_on) in package["features"].as_object().unwrap() {
            if feature == FEATURE {
                with_it.insert(name);
            } else {
                assert!(!turns_on.as_array().unwrap().iter().any(names), "{name}: {feature} turns it on");
            }
        }
        for dependency in list(package, "dependencies") {
            let turned_on = list(dependency, "features").iter().any(names);
            assert!(!turned_on, "{name}: its dependency {} turns it on", text(dependency, "name"));
        }
    }
    assert!(
        with_it.is_superset(&BTreeSet::from(["steadfast", "steadfast-cli", "steadfast-sim"])),
        "{with_it:?}"
    );
}

#[test]
fn the_core_names_nothing_that_acts() {
    let banned = [
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "ToSocketAddrs",
        "std::thread",
        "std::fs",
        "std::process",
        "std::env",
        "std::os",
        "Instant::now",
        "SystemTime",
        "HashMap",
        "HashSet",
        "println!",
        "eprintln!",
        "tokio",
        "smol",
        "async fn",
    ];
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("core/src");
    let mut folders = vec![source.clone()];
    let mut lines = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            // Tests may do what they like; they stand last in a file, or in files of their own.
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            if path
                .strip_prefix(&source)
                .unwrap()
                .iter()
                .any(|part| part == "tests" || part == "tests.rs" || part == "testing.rs")
            {
                continue;
            }
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                lines += 1;
                for word in banned {
                    assert!(!line.contains(word), "{}: {line}", path.display());
                }
            }
        }
    }
    assert!(lines > 5_000, "{lines}");
}
