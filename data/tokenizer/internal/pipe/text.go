package pipe

import "unicode/utf8"

// A Text is a part of the original text, which normalizers may have changed. It knows which part of the original text
// each of its bytes comes from.
type Text struct {
	Content string
	Budget  *Budget // for the whole original text

	first int    // if there are no spans, byte i of Content is byte first+i of the original text
	spans []Span // for each byte of Content: the whole characters of the original text that it comes from
}

// A Span is the part of the original text from byte Start to before byte End.
type Span struct{ Start, End int32 }

// Sub returns the part of the Text from byte start to before byte end.
func (a Text) Sub(start, end int) Text {
	a.Content, a.first = a.Content[start:end], a.first+start
	if a.spans != nil {
		a.spans = a.spans[start:end]
	}
	return a
}

// Replaced returns a Text that replaces the whole of a. There is one span per byte.
func (a Text) Replaced(text []byte, spans []Span) Text {
	a.Budget.Bytes -= int64(max(0, len(text)-len(a.Content)))
	return Text{Content: string(text), first: a.first, spans: spans, Budget: a.Budget}
}

// Original returns the part of the original text that the bytes from start to before end come from. If they begin or
// end inside a character, the part includes the whole character.
func (a Text) Original(start, end int) (int, int) {
	if a.spans == nil {
		for start > 0 && start < len(a.Content) && !utf8.RuneStart(a.Content[start]) {
			start--
		}
		for end < len(a.Content) && !utf8.RuneStart(a.Content[end]) {
			end++
		}
		return a.first + start, a.first + end
	}
	if start == end {
		if start == len(a.spans) {
			if start == 0 {
				return a.first, a.first
			}
			return int(a.spans[start-1].End), int(a.spans[start-1].End)
		}
		return int(a.spans[start].Start), int(a.spans[start].Start)
	}
	return int(a.spans[start].Start), int(a.spans[end-1].End)
}

// A Rewriter builds the Text that replaces another, from its start to its end. All methods take whole characters. If
// the new text would be too long for the budget, parts of it are missing, and the budget has an error.
type Rewriter struct {
	In    Text
	Out   []byte
	Spans []Span
	Done  int // bytes of In that have been kept, replaced or removed
}

// Keep copies the next n bytes.
func (w *Rewriter) Keep(n int) {
	text, done := w.In.Content[w.Done:w.Done+n], w.Done
	w.Done += n
	w.grow()
	w.Out = append(w.Out, text...)
	if w.In.spans != nil {
		w.Spans = append(w.Spans, w.In.spans[done:w.Done]...)
		return
	}
	first := int32(w.In.first + done)
	for i, r := range text {
		s := Span{first + int32(i), first + int32(i+utf8.RuneLen(r))}
		for range s.End - s.Start {
			w.Spans = append(w.Spans, s)
		}
	}
}

// grow makes room for the new text, which is seldom much longer than the old one.
func (w *Rewriter) grow() {
	if w.Out == nil {
		size := len(w.In.Content)*5/4 + 4
		w.Out, w.Spans = make([]byte, 0, size), make([]Span, 0, size)
	}
}

// Replace replaces the next n bytes by s. All bytes of s come from the first of these characters.
func (w *Rewriter) Replace(n int, s string) {
	start, end := w.In.Original(w.Done, w.Done+min(1, n))
	w.Done += n
	w.Put(s, Span{int32(start), int32(end)})
}

// Prepend adds s before the text. All bytes of s come from the first character of the text.
func (w *Rewriter) Prepend(s string) {
	start, end := w.In.Original(0, min(1, len(w.In.Content)))
	w.Put(s, Span{int32(start), int32(end)})
}

// Beside adds s, which comes from the last character that was replaced or kept.
func (w *Rewriter) Beside(s string) {
	var origin Span
	if w.Done > 0 {
		start, end := w.In.Original(w.Done-1, w.Done)
		origin = Span{int32(start), int32(end)}
	}
	w.Put(s, origin)
}

// Put adds s, which comes from a part of the original text.
func (w *Rewriter) Put(s string, origin Span) {
	if !w.In.Budget.Fits(len(w.Out) + len(s) - w.Done) {
		return
	}
	w.grow()
	w.Out = append(w.Out, s...)
	for range len(s) {
		w.Spans = append(w.Spans, origin)
	}
}

// Result keeps the rest of the old text, and returns the new Text.
func (w *Rewriter) Result() Text {
	w.Keep(len(w.In.Content) - w.Done)
	return w.In.Replaced(w.Out, w.Spans)
}
