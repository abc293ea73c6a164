//! Templates for files that have none (or a broken one), chosen by the turn markers that the vocabulary knows.

use crate::tokenizer::Tokenizer;

/// A built-in template.
pub(super) struct Fallback {
    /// What to call it in messages.
    pub(super) name: &'static str,
    pub(super) source: &'static str,
    pub(super) stops: &'static [&'static str],
}

const CHATML: Fallback = Fallback {
    name: "ChatML",
    source: "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}\
             {% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    stops: &[],
};

/// Gemma has no system role: what a system message says opens the first turn of the user.
const GEMMA: Fallback = Fallback {
    name: "Gemma turns",
    source: "{{ bos_token }}{% set ns = namespace(lead='') %}{% for m in messages %}\
             {% if m.role == 'system' %}{% set ns.lead = ns.lead + m.content + '\\n\\n' %}{% else %}\
             {{ '<start_of_turn>' + ('model' if m.role == 'assistant' else 'user') + '\\n' \
             + ns.lead + (m.content | trim) + '<end_of_turn>\\n' }}{% set ns.lead = '' %}{% endif %}{% endfor %}\
             {% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
    stops: &[],
};

const LLAMA3: Fallback = Fallback {
    name: "Llama 3 headers",
    source: "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' \
             + (m.content | trim) + '<|eot_id|>' }}{% endfor %}\
             {% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}",
    stops: &[],
};

const PLAIN: Fallback = Fallback {
    name: "plain User and Assistant lines",
    source: "{% for m in messages %}{% if m.role == 'system' %}{{ m.content + '\\n\\n' }}{% else %}\
             {{ ('Assistant: ' if m.role == 'assistant' else 'User: ') + m.content + '\\n' }}{% endif %}{% endfor %}\
             {% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}",
    stops: &["\nUser:", "\nAssistant:"],
};

/// The built-in template that fits the vocabulary.
pub(super) fn fitting(tokenizer: &Tokenizer) -> Fallback {
    for (marker, fallback) in [
        ("<|im_start|>", CHATML),
        ("<start_of_turn>", GEMMA),
        ("<|start_header_id|>", LLAMA3),
    ] {
        if tokenizer.token_id(marker).is_some() {
            return fallback;
        }
    }
    PLAIN
}
