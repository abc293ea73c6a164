//! The template language as chat templates expect it: white space control, filters and functions as in Hugging Face's
//! library, and a limit on the work that a template may do.

use std::io;

use minijinja::value::{Kwargs, Rest};
use minijinja::{Environment, Error, ErrorKind, Value};
use serde::Serialize;

/// Steps one rendering may take: a chat of a thousand turns takes about a hundredth of it.
const FUEL: u64 = 5_000_000;

/// Name of the only template in an environment.
pub(super) const NAME: &str = "chat";

/// What a template said when it refused to render.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(pub(super) String);

/// Compiles `source`.
pub(super) fn environment(source: &str) -> Result<Environment<'static>, Error> {
    let mut env = Environment::new();
    env.set_trim_blocks(true);
    env.set_lstrip_blocks(true);
    env.set_fuel(Some(FUEL));
    env.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    env.add_filter("tojson", to_json);
    env.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message.clone()).with_source(Refusal(message)))
    });
    env.add_template_owned(NAME, without_generation_tags(source))?;
    Ok(env)
}

/// `{% generation %}` marks the assistant's words for training; for us it is a block that is always taken.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(open) = rest.find("{%") {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let Some(close) = from.find("%}") else {
            rest = from;
            break;
        };
        let (tag, after) = from.split_at(close + 2);
        let word = tag.trim_matches(|c: char| matches!(c, '{' | '}' | '%' | '-' | '+') || c.is_whitespace());
        match word {
            "generation" => out.push_str(&tag.replace("generation", "if true")),
            "endgeneration" => out.push_str(&tag.replace("endgeneration", "endif")),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// JSON as Python writes it: `", "` and `": "` between items, no escaping of `<` or of letters outside ASCII.
fn to_json(value: &Value, _extra: Rest<Value>, options: Kwargs) -> Result<String, Error> {
    let failed = |error: String| Error::new(ErrorKind::BadSerialization, error);
    let indent: Option<usize> = options.get("indent")?;
    let mut out = Vec::new();
    let result = match indent {
        Some(width) => {
            let spaces = " ".repeat(width.min(16));
            let pretty = serde_json::ser::PrettyFormatter::with_indent(spaces.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, pretty))
        }
        None => value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, Spaced)),
    };
    result.map_err(|error| failed(error.to_string()))?;
    String::from_utf8(out).map_err(|error| failed(error.to_string()))
}

struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str) -> String {
        environment(source)
            .unwrap()
            .get_template(NAME)
            .unwrap()
            .render(minijinja::context! { x => "ä<b>" })
            .unwrap()
    }

    #[test]
    fn white_space_and_python_methods_are_as_templates_expect() {
        assert_eq!(
            render("{% if true %}\n  {% set y = 1 %}\n  a\n{% endif %}\nb"),
            "  a\nb"
        );
        assert_eq!(
            render("{{ ' a '.strip() }}{{ 'ab'.startswith('a') }}{{ 'a-b'.split('-')[-1] }}"),
            "aTrueb"
        );
        assert_eq!(render("{%- generation -%} x {%- endgeneration -%} y"), "xy");
        assert_eq!(
            render("{% for i in [1,2,3] %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "1"
        );
    }

    #[test]
    fn the_constructs_that_chat_templates_use_are_there() {
        for (source, expected) in [
            (
                "{% macro turn(who, what='-') %}[{{ who }}:{{ what }}]{% endmacro %}{{ turn('a') }}{{ turn('b', what='c') }}",
                "[a:-][b:c]",
            ),
            (
                "{% set ns = namespace(n=0) %}{% for i in [1, 2] %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
                "3",
            ),
            (
                "{{ [1, 2, 3][1:] | length }}{{ [1, 2, 3][::-1][0] }}{{ 'abc'[-1] }}",
                "23c",
            ),
            (
                "{% if x is string and x is not mapping and x is defined and y is not defined %}yes{% endif %}",
                "yes",
            ),
            (
                "{{ {'k': 1}.get('k') }}{% for k, v in {'a': 2}.items() %}{{ k ~ v }}{% endfor %}",
                "1a2",
            ),
            (
                "{{ [{'r': 'a'}, {'r': 'b'}] | selectattr('r', 'equalto', 'b') | list | length }}",
                "1",
            ),
            (
                "{{ [{'r': 'a'}, {'r': 'b'}] | map(attribute='r') | join(',') }}",
                "a,b",
            ),
            (
                "{% for i in [1, 2, 3] %}{% if loop.first %}f{% elif loop.last %}l{% else %}{{ loop.index0 % 2 }}{% endif %}{% endfor %}",
                "f1l",
            ),
            (
                "{{ 'a\\nb'.split('\\n')[-1].lstrip('x').rstrip().title() }}{{ ' z' | trim | upper }}",
                "BZ",
            ),
            (
                "{% set t = none %}{{ 'none' if t is none else 'some' }}{{ (t or 'z') }}{{ 'a' in 'abc' and 'd' not in 'abc' }}",
                "nonezTrue",
            ),
            (
                "{{ '%s-%s' | format('a', 'b') }}{{ 'aXa'.replace('X', 'b') }}{{ 'ab'.endswith('b') }}",
                "a-babaTrue",
            ),
        ] {
            assert_eq!(render(source), expected, "{source}");
        }
    }

    #[test]
    fn json_is_written_as_python_writes_it() {
        assert_eq!(
            render("{{ {'a': [1, x], 'b': none} | tojson }}"),
            "{\"a\": [1, \"ä<b>\"], \"b\": null}"
        );
        assert_eq!(render("{{ [1] | tojson(indent=2) }}"), "[\n  1\n]");
    }

    #[test]
    fn endless_templates_stop() {
        let source = "{% for i in range(90000) %}{% for j in range(90000) %}{{ j }}{% endfor %}{% endfor %}";
        let env = environment(source).unwrap();
        let error = env.get_template(NAME).unwrap().render(()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfFuel);
    }
}
