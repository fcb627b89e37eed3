//! Names: reserved words of Verilog and SystemVerilog, forbidden characters, names that differ only in case.

use std::collections::HashSet;

/// Reserved words of IEEE 1364-2005 and IEEE 1800-2017, whichever language is written: the other one may be read some day.
const RESERVED: &str = "accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind bins binsof bit \
break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config const constraint context continue cover covergroup coverpoint \
cross deassign default defparam design disable dist do edge else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup \
endinterface endmodule endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask enum event eventually expect export extends \
extern final first_match for force foreach forever fork forkjoin function generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins \
implements implies import incdir include initial inout input inside instance int integer interconnect interface intersect join join_any join_none large let \
liblist library local localparam logic longint macromodule matches medium modport module nand negedge nettype new nexttime nmos nor noshowcancelled not \
notif0 notif1 null or output package packed parameter pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup \
pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos \
rtran rtranif0 rtranif1 s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal showcancelled signed small soft solve \
specify specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on table tagged task this throughout time \
timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef union unique unique0 unsigned until until_with untyped use uwire \
var vectored virtual void wait wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor";

/// Words of C++ and of its library that Verilator keeps for itself.
const CPP: &str = "abort alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bit_vector bitand bitor bool break case catch cdecl \
char char16_t char32_t class compl concept const const_cast const_iterator constexpr continue decltype default delete deque do double dynamic_cast else enum \
explicit export extern false far float for friend goto huge if import inline int interrupt iterator list long map module multimap multiset mutable namespace \
near new noexcept not not_eq nullptr operator or or_eq pair pascal private protected public queue reference register reinterpret_cast requires restrict return \
set short signed sizeof stack static static_assert static_cast std string struct switch synchronized template this thread_local throw transaction_safe \
transaction_safe_dynamic true try type_info typedef typeid typename uint16_t uint32_t uint8_t union unsigned using vector virtual void volatile wchar_t while \
xor xor_eq";

/// True if no block may use the word as a name, in either language.
pub(crate) fn is_reserved(word: &str) -> bool {
    RESERVED.split_whitespace().any(|r| r == word)
}

/// Names of one scope.
#[derive(Debug, Default)]
pub(super) struct Names {
    separator: String,
    cpp: bool,
    taken: HashSet<String>,
}

impl Names {
    /// `cpp`: words of C++ are no names either.
    pub(super) fn new(separator: &str, cpp: bool) -> Self {
        Self { separator: separator.into(), cpp, taken: HashSet::new() }
    }

    /// A legal, unused name as close as possible to the wanted one.
    pub(super) fn claim(&mut self, wanted: &str) -> String {
        let mut name: String = wanted.replace('$', &self.separator).chars().map(|c| if legal(c) { c } else { '_' }).collect();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            name.insert(0, '_');
        }
        if is_reserved(&name.to_lowercase()) || self.cpp && CPP.split_whitespace().any(|w| w == name) {
            name.push('_');
        }
        let base = name.clone();
        let mut number = 1;
        while !self.taken.insert(name.to_lowercase()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        name
    }
}

fn legal(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_of_both_languages_and_of_cpp_are_renamed() {
        let mut names = Names::new("$", true);
        assert_eq!(names.claim("logic"), "logic_");
        assert_eq!(names.claim("begin"), "begin_");
        assert_eq!(names.claim("Priority"), "Priority_");
        assert_eq!(names.claim("abort"), "abort_");
        assert_eq!(names.claim("data"), "data");
    }

    #[test]
    fn names_that_differ_only_in_case_are_numbered() {
        let mut names = Names::new("$", true);
        assert_eq!(names.claim("acc"), "acc");
        assert_eq!(names.claim("Acc"), "Acc_2");
        assert_eq!(names.claim("ACC"), "ACC_3");
    }

    #[test]
    fn a_separator_that_joins_two_names_into_a_third_is_no_clash() {
        let mut names = Names::new("_", false);
        assert_eq!(names.claim("a_b"), "a_b");
        assert_eq!(names.claim("a$b"), "a_b_2");
        assert_eq!(names.claim("end$"), "end_");
    }
}
