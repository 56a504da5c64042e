package tokenizer

import "unicode/utf8"

// An aligned is a part of a text that normalisers may have changed. It knows which part of the original text each byte
// comes from.
type aligned struct {
	text  string
	first int    // without spans, byte i of text is byte first+i of the original text
	spans []span // for each byte of text, the whole characters of the original text that it comes from

	budget *budget // of the whole text
}

// A span is the part of the original text from byte start to byte end.
type span struct{ start, end int32 }

// sub returns the part from byte start to byte end of a.text.
func (a aligned) sub(start, end int) aligned {
	a.text, a.first = a.text[start:end], a.first+start
	if a.spans != nil {
		a.spans = a.spans[start:end]
	}
	return a
}

// replaced returns the text that replaces a.
func (a aligned) replaced(text []byte, spans []span) aligned {
	a.budget.bytes -= int64(max(0, len(text)-len(a.text)))
	return aligned{text: string(text), first: a.first, spans: spans, budget: a.budget}
}

// original returns the part of the original text that the bytes from start to end come from. It widens parts of
// characters to whole characters.
func (a aligned) original(start, end int) (int, int) {
	if a.spans == nil {
		for start > 0 && start < len(a.text) && !utf8.RuneStart(a.text[start]) {
			start--
		}
		for end < len(a.text) && !utf8.RuneStart(a.text[end]) {
			end++
		}
		return a.first + start, a.first + end
	}
	if start == end {
		if start == len(a.spans) {
			if start == 0 {
				return a.first, a.first
			}
			return int(a.spans[start-1].end), int(a.spans[start-1].end)
		}
		return int(a.spans[start].start), int(a.spans[start].start)
	}
	return int(a.spans[start].start), int(a.spans[end-1].end)
}

// A rewriter builds the text that replaces an aligned text, from its start to its end. The text that it replaces is
// made of whole characters. If the new text would be too long for the budget, parts of it are missing, and the budget
// has an error.
type rewriter struct {
	in    aligned
	out   []byte
	spans []span
	done  int // bytes of in.text that have been kept, replaced or removed
}

// keep copies the next n bytes.
func (w *rewriter) keep(n int) {
	text, done := w.in.text[w.done:w.done+n], w.done
	w.done += n
	w.grow()
	w.out = append(w.out, text...)
	if w.in.spans != nil {
		w.spans = append(w.spans, w.in.spans[done:w.done]...)
		return
	}
	first := int32(w.in.first + done)
	for i, r := range text {
		s := span{first + int32(i), first + int32(i+utf8.RuneLen(r))}
		for range s.end - s.start {
			w.spans = append(w.spans, s)
		}
	}
}

// grow makes room for the new text, which is seldom much longer than the old one.
func (w *rewriter) grow() {
	if w.out == nil {
		size := len(w.in.text)*5/4 + 4
		w.out, w.spans = make([]byte, 0, size), make([]span, 0, size)
	}
}

// replace replaces the next n bytes by s, whose bytes all come from the first of these n bytes.
func (w *rewriter) replace(n int, s string) {
	start, end := w.in.original(w.done, w.done+min(1, n))
	w.done += n
	w.put(s, span{int32(start), int32(end)})
}

// prepend adds s before the text. Its bytes share the origin of the first character.
func (w *rewriter) prepend(s string) {
	start, end := w.in.original(0, min(1, len(w.in.text)))
	w.put(s, span{int32(start), int32(end)})
}

// beside adds s, which comes from the last character that has been replaced or kept.
func (w *rewriter) beside(s string) {
	var from span
	if w.done > 0 {
		start, end := w.in.original(w.done-1, w.done)
		from = span{int32(start), int32(end)}
	}
	w.put(s, from)
}

func (w *rewriter) put(s string, from span) {
	if !w.in.budget.fits(len(w.out) + len(s) - w.done) {
		return
	}
	w.grow()
	w.out = append(w.out, s...)
	for range len(s) {
		w.spans = append(w.spans, from)
	}
}

// result returns the new text, after the rest of the old one has been kept.
func (w *rewriter) result() aligned {
	w.keep(len(w.in.text) - w.done)
	return w.in.replaced(w.out, w.spans)
}

// A ptoken is an id and the part of a text that it comes from.
type ptoken struct{ ID, Start, End int }
