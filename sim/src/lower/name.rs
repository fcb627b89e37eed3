//! Names in kernels: `pe[k].a[i * 8 + j]$next` to `pe$1$a$19`. Every index group is evaluated with the values of the loops around it.

/// Values of the enclosing loops, innermost last.
pub(super) type Loops = Vec<(String, i64)>;

/// The name with every index group replaced by its value, or the text that could not be evaluated.
pub(super) fn resolve(text: &str, loops: &Loops) -> Result<String, String> {
    let flat = text.replace(' ', "").replace("::", "$").replace('.', "$");
    let flat = flat.trim_start_matches('$');
    let flat = flat.strip_suffix("$next").unwrap_or(flat);
    let mut out = String::with_capacity(flat.len());
    let mut rest = flat;
    while let Some(open) = rest.find('[') {
        let mut depth = 0;
        let close = rest[open..]
            .char_indices()
            .find(|&(_, c)| {
                depth += match c {
                    '[' => 1,
                    ']' => -1,
                    _ => 0,
                };
                depth == 0
            })
            .map(|(i, _)| open + i)
            .ok_or_else(|| text.to_string())?;
        let value =
            Index { text: &rest.as_bytes()[open + 1..close], at: 0, loops }.whole().ok_or_else(|| rest[open + 1..close].to_string())?;
        out.push_str(&rest[..open]);
        out.push('$');
        out.push_str(&value.to_string());
        rest = &rest[close + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// Recursive descent over `+ - * / %`, parentheses, numbers and loop variables.
struct Index<'a> {
    text: &'a [u8],
    at: usize,
    loops: &'a Loops,
}

impl Index<'_> {
    fn whole(mut self) -> Option<i64> {
        let value = self.sum()?;
        (self.at == self.text.len()).then_some(value)
    }
    fn eat(&mut self, set: &[u8]) -> Option<u8> {
        let c = *self.text.get(self.at)?;
        set.contains(&c).then(|| {
            self.at += 1;
            c
        })
    }
    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        while let Some(op) = self.eat(b"+-") {
            let right = self.product()?;
            value = if op == b'+' { value.checked_add(right)? } else { value.checked_sub(right)? };
        }
        Some(value)
    }
    fn product(&mut self) -> Option<i64> {
        let mut value = self.atom()?;
        while let Some(op) = self.eat(b"*/%") {
            let right = self.atom()?;
            value = match op {
                b'*' => value.checked_mul(right)?,
                b'/' => value.checked_div(right)?,
                _ => value.checked_rem(right)?,
            };
        }
        Some(value)
    }
    fn atom(&mut self) -> Option<i64> {
        if self.eat(b"(").is_some() {
            let value = self.sum()?;
            self.eat(b")")?;
            return Some(value);
        }
        let start = self.at;
        while self.at < self.text.len() && (self.text[self.at].is_ascii_alphanumeric() || self.text[self.at] == b'_') {
            self.at += 1;
        }
        let word = std::str::from_utf8(&self.text[start..self.at]).ok()?;
        let digits = word.strip_suffix("usize").unwrap_or(word);
        digits.parse().ok().or_else(|| self.loops.iter().rev().find(|l| l.0 == word).map(|l| l.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_group_is_evaluated() {
        let loops = vec![("k".to_string(), 2), ("i".to_string(), 3)];
        assert_eq!(resolve("pe[k].a[(i + 1) * 8 - k]$next", &loops), Ok("pe$2$a$30".into()));
        assert_eq!(resolve(".bus.valid", &loops), Ok("bus$valid".into()));
    }

    #[test]
    fn an_unknown_index_variable_is_reported() {
        assert_eq!(resolve("a[i + N]", &vec![("i".into(), 0)]), Err("i+N".into()));
    }
}
