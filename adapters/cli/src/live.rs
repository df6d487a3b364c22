//! The live line below the answer, on terminals.
//!
//! The answer and the line share a screen: the answer's last row is seldom ended by a line break,
//! so the line goes into the row below it, and the cursor comes back to the answer. That takes no
//! knowledge of the screen's width, of how wide the answer's characters are, or of scrolling.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Stderr, Write};

use crate::output::{for_terminal, print};
use crate::progress::Progress;

/// Makes sure of a row below, and remembers the place: vertical tab moves down, scrolling at the
/// bottom, and keeps the column
const BELOW: &str = "\x0b\x1b[A\x1b7\x1b[B\r\x1b[2K";
/// Goes back to the place
const BACK: &str = "\x1b8";
/// Erases all that is after the cursor
const ERASE: &str = "\x1b[J";
/// Cuts off what is too long for the row, instead of going on in the next
const WRAP_OFF: &str = "\x1b[?7l";
const WRAP_ON: &str = "\x1b[?7h";

/// Prints an answer, with a line below it that shows how the call stands
///
/// Where stderr is not a terminal, only the answer is printed. Dropping it erases the line.
pub(crate) struct Live {
    line: Option<Line<Stderr>>,
    /// Whether the answer stands at the beginning of a row
    at_line_start: bool,
    /// Whether stdout is a terminal, which the answer must not command
    on_terminal: bool,
}

impl Live {
    /// Begins without a line; the first comes with [`Live::show`]
    pub(crate) fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let line = (io::stderr().is_terminal() && !dumb).then(|| Line::new(io::stderr()));
        Self { line, at_line_start: true, on_terminal: io::stdout().is_terminal() }
    }

    /// Whether there is a terminal that shows the line
    pub(crate) fn is_shown(&self) -> bool {
        self.line.is_some()
    }

    /// Shows how the call stands
    pub(crate) fn show(&mut self, progress: Progress) {
        if let Some(line) = &mut self.line {
            line.draw(&progress);
        }
    }

    /// Prints a piece of the answer on stdout, without the line until it is shown again
    ///
    /// On a terminal its control characters are replaced by pictures of them.
    ///
    /// Errors: those of stdout.
    pub(crate) fn print(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if let Some(line) = &mut self.line {
            line.erase();
        }
        print(&if self.on_terminal { for_terminal(text) } else { Cow::Borrowed(text) })?;
        self.at_line_start = text.ends_with('\n');
        Ok(())
    }

    /// Ends the answer's last row, if it has begun
    ///
    /// Errors: those of stdout.
    pub(crate) fn end_row(&mut self) -> io::Result<()> {
        if self.at_line_start { Ok(()) } else { self.print("\n") }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(line) = &mut self.line {
            line.erase();
        }
    }
}

/// The line on its terminal
struct Line<W> {
    terminal: W,
    drawn: bool,
}

impl<W: Write> Line<W> {
    fn new(terminal: W) -> Self {
        Self { terminal, drawn: false }
    }

    fn draw(&mut self, progress: &Progress) {
        self.drawn = true;
        self.write(&format!("{BELOW}{WRAP_OFF}{}{WRAP_ON}{BACK}", progress.line()));
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.drawn) {
            self.write(ERASE);
        }
    }

    /// Writes in one piece, so that nothing comes between
    fn write(&mut self, text: &str) {
        // A terminal that is gone is no reason to lose the answer.
        _ = self.terminal.write_all(text.as_bytes());
        _ = self.terminal.flush();
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;
    use std::time::Duration;

    use steadfast::time::Bound;

    use super::*;
    use crate::progress::Phase;

    const ROWS: NonZeroU16 = NonZeroU16::new(4).unwrap();
    const COLUMNS: NonZeroU16 = NonZeroU16::new(50).unwrap();
    const SHOWN: &str = "connecting · attempt 1 of 3 · 0.0 s of 10 s";

    /// A terminal that, as its driver does, takes a line feed to be a line break
    struct Tty(vt100::Parser);

    impl Write for Tty {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
                match piece.strip_suffix(b"\n") {
                    Some(row) => self.0.process(&[row, b"\r\n"].concat()),
                    None => self.0.process(piece),
                }
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What both the answer and the line are written to
    struct Screen {
        line: Line<Tty>,
    }

    impl Screen {
        fn new() -> Self {
            Self { line: Line::new(Tty(vt100::Parser::new(ROWS, COLUMNS, 0))) }
        }

        fn draw(&mut self) -> Vec<String> {
            self.line.draw(&Progress {
                phase: Phase::Connecting,
                attempt: 1,
                max_attempts: 3,
                bytes: 0,
                waited: Duration::ZERO,
                bound: Bound::Limited(Duration::from_secs(10)),
            });
            self.rows()
        }

        /// What [`Live::print`] and [`Live::show`] do
        fn print(&mut self, text: &str) -> Vec<String> {
            self.line.erase();
            self.line.terminal.write_all(text.as_bytes()).unwrap();
            self.draw()
        }

        fn end(&mut self) -> Vec<String> {
            self.line.erase();
            self.rows()
        }

        fn rows(&self) -> Vec<String> {
            self.line.terminal.0.screen().rows(0, COLUMNS.get()).collect()
        }
    }

    #[test]
    fn the_line_is_below_the_answer_and_leaves_no_trace() {
        let mut screen = Screen::new();
        assert_eq!(screen.draw(), ["", SHOWN, "", ""]);
        assert_eq!(screen.draw(), ["", SHOWN, "", ""]);
        assert_eq!(screen.print("Hello"), ["Hello", SHOWN, "", ""]);
        assert_eq!(screen.draw(), ["Hello", SHOWN, "", ""]);
        assert_eq!(screen.print(", world.\nMore"), ["Hello, world.", "More", SHOWN, ""]);
        assert_eq!(screen.end(), ["Hello, world.", "More", "", ""]);
    }

    #[test]
    fn at_the_bottom_the_screen_scrolls_by_one_row() {
        let mut screen = Screen::new();
        assert_eq!(screen.print("a\nb\nc\nd"), ["b", "c", "d", SHOWN]);
        assert_eq!(screen.draw(), ["b", "c", "d", SHOWN]);
        assert_eq!(screen.print("e"), ["b", "c", "de", SHOWN]);
        assert_eq!(screen.print("\nf"), ["c", "de", "f", SHOWN]);
        assert_eq!(screen.end(), ["c", "de", "f", ""]);
    }

    #[test]
    fn an_answer_that_wraps_looks_as_on_a_screen_of_its_own() {
        let mut screen = Screen::new();
        let above = NonZeroU16::new(ROWS.get() - 1).unwrap();
        let mut alone = Tty(vt100::Parser::new(above, COLUMNS, 0));
        // Ends in every column, the last one too, and wide characters that do not fit it.
        for number in 0..200 {
            let word = ["w", "örd ", "字", "\n", "a longer piece of text ", "字字字"][number % 6];
            let mut rows = screen.print(word);
            alone.write_all(word.as_bytes()).unwrap();
            let shown = rows.iter().position(|row| row == SHOWN).unwrap();
            rows.remove(shown);
            assert_eq!(rows, alone.0.screen().rows(0, COLUMNS.get()).collect::<Vec<_>>(), "after {number}");
            assert_eq!(
                screen.line.terminal.0.screen().cursor_position(),
                alone.0.screen().cursor_position(),
                "after {number}"
            );
        }
    }
}
