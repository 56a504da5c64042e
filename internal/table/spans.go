package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/internal/text"
)

// A spanReader makes words and their tags of texts with spans of characters, and counts them. Programs for annotation
// write such JSON:
//
//	{"text": "Ann Lee sings.", "label": [[0, 7, "PER"]]}                               doccano; "labels", too
//	{"text": "Ann", "entities": [{"start_offset": 0, "end_offset": 3, "label": "PER"}]} doccano with relations
//	{"text": "Ann Lee sings.", "label": [{"start": 0, "end": 7, "labels": ["PER"]}]}   Label Studio, JSON-MIN
//	{"data": {"text": "Ann Lee sings."}, "annotations": [{"result":                     Label Studio, JSON
//	  [{"type": "labels", "value": {"start": 0, "end": 7, "labels": ["PER"]}}]}]}
//	{"text": "Ann Lee sings.", "spans": [{"start": 0, "end": 7, "label": "PER"}]}      Prodigy
//	["Ann Lee sings.", {"entities": [[0, 7, "PER"]]}]                                  spaCy
type spanReader struct {
	columns []string // Options.Columns

	rows, spans, inside, lost int // numbers of rows, spans, spans that begin or end inside a word, and spans without words
	several                   int // texts with several annotations
}

// A span is a part of a text, in characters.
type span struct {
	start, end int
	label      string
}

// A written is a span as programs write it.
type written struct {
	Start, End, Label json.RawMessage   `json:",omitempty"`
	StartOffset       json.RawMessage   `json:"start_offset,omitempty"`
	EndOffset         json.RawMessage   `json:"end_offset,omitempty"`
	Labels            []json.RawMessage `json:",omitempty"`
}

// An annotation is the work of one person on a task of Label Studio.
type annotation struct {
	Cancelled bool `json:"was_cancelled"`
	Result    []struct {
		Type  string
		Value written
	}
}

// members is like the function members. An object with spans gets the members tokens and tags, or Columns, in place of
// its own.
func (s *spanReader) members(line []byte) (object, error) {
	o, err := s.annotated(line)
	if err != nil {
		return nil, err
	}
	names, texts, marks := []string{"tokens", "tags"}, []string{"text", "data"}, []string{"label", "labels", "spans", "entities"}
	if len(s.columns) == 2 {
		names, texts, marks = s.columns, s.columns[:1], s.columns[1:]
	}
	content, list := o.find(texts, `"`), o.find(marks, "[[", "[{")
	if list == nil {
		list = o.find(marks, "[]")
	}
	if content == nil || list == nil {
		return o, nil
	}
	if answer := string(o.find([]string{"answer"}, `"`)); answer == `"reject"` || answer == `"ignore"` {
		return nil, fmt.Errorf("its answer in Prodigy is %s: leave it out", answer)
	}
	source, err := scalarText(content)
	var spans []span
	if err == nil {
		err = jsonkeys.Elements(list, func(element []byte) error {
			x, err := spanOf(element)
			spans = append(spans, x)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("a text with spans: %w", err)
	}
	words, tags, err := s.tags(source, spans)
	if err != nil {
		return nil, err
	}
	o = nil
	for i, field := range []string{strings.Join(words, " "), strings.Join(tags, " ")} {
		value, err := json.Marshal(field)
		if err != nil {
			return nil, err
		}
		o = append(o, member{names[i], value})
	}
	return o, nil
}

// find returns the first value that has one of the keys and begins with one of the texts, without white space between
// its first characters.
func (o object) find(keys []string, begins ...string) []byte {
	for _, m := range o {
		inside := bytes.TrimLeft(m.value[1:], jsonSpace)
		start := string(m.value[:1]) + string(inside[:min(1, len(inside))])
		if slices.Contains(keys, m.key) && slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(start, b) }) {
			return m.value
		}
	}
	return nil
}

// annotated is like the function members. It also accepts a list of a text and an object. A task of Label Studio has
// the members of its data, and the spans of its first annotation as label.
func (s *spanReader) annotated(line []byte) (object, error) {
	if line = bytes.TrimLeft(line, jsonSpace); line[0] == '[' {
		var pair []json.RawMessage
		if err := json.Unmarshal(line, &pair); err != nil || len(pair) != 2 || pair[0][0] != '"' || pair[1][0] != '{' {
			return nil, fmt.Errorf("neither a JSON object nor a text with an object: %.50q", line)
		}
		o, err := members(pair[1])
		return append(object{{"text", pair[0]}}, o...), err
	}
	o, err := members(line)
	content, work := o.find([]string{"data"}, "{"), o.find([]string{"annotations"}, "[")
	if err != nil || content == nil || work == nil {
		return o, err
	}
	var annotations []annotation
	if err := json.Unmarshal(work, &annotations); err != nil {
		return nil, fmt.Errorf("a task of Label Studio: %w", err)
	}
	annotations = slices.DeleteFunc(annotations, func(a annotation) bool { return a.Cancelled })
	if len(annotations) == 0 {
		return nil, errors.New("the task has no annotation, or only cancelled ones: annotate it, or leave it out")
	}
	if len(annotations) > 1 {
		s.several++
	}
	spans := []written{}
	for _, r := range annotations[0].Result {
		if r.Type == "labels" { // others are relations and labels of the whole text
			spans = append(spans, r.Value)
		}
	}
	list, err := json.Marshal(spans)
	if err == nil {
		o, err = members(content)
	}
	return append(object{{"label", list}}, o...), err
}

// spanOf reads a list of start, end and label, or an object with these members.
func spanOf(value []byte) (x span, err error) {
	var place [2]json.RawMessage
	var label json.RawMessage
	if value[0] == '[' {
		var list []json.RawMessage
		if err = json.Unmarshal(value, &list); err == nil && len(list) < 3 {
			err = errors.New("it has fewer than 3 elements")
		}
		if err == nil {
			place, label = [2]json.RawMessage(list), list[2]
		}
	} else {
		var o written
		err = json.Unmarshal(value, &o)
		if place, label = [2]json.RawMessage{o.Start, o.End}, o.Label; o.Start == nil {
			place = [2]json.RawMessage{o.StartOffset, o.EndOffset}
		}
		if label == nil && len(o.Labels) == 1 {
			label = o.Labels[0]
		}
	}
	for i, into := range []*int{&x.start, &x.end} {
		if err == nil {
			*into, err = strconv.Atoi(string(place[i]))
		}
	}
	if err == nil && label != nil {
		x.label, err = scalarText(label)
		x.label = strings.Join(strings.Fields(x.label), "_")
	}
	if err != nil || x.label == "" {
		return x, fmt.Errorf("a span must be a list or an object with a start, an end and one label, got %.100q", value)
	}
	return x, nil
}

// tags returns the words of a text and their tags: B and I with a label in spans, and O outside. A word belongs to a
// span if they share a character. Of spans that share a word, the first and, of these, the longest counts.
func (s *spanReader) tags(source string, spans []span) (words, tags []string, err error) {
	type place struct{ start, end int }
	var places []place
	done, count := 0, 0 // in bytes, and in characters
	for start, end := range text.Places(source, text.Words(source)) {
		first := count + utf8.RuneCountInString(source[done:start])
		count, done = first+utf8.RuneCountInString(source[start:end]), end
		words, tags, places = append(words, source[start:end]), append(tags, "O"), append(places, place{first, count})
	}
	total := count + utf8.RuneCountInString(source[done:])
	slices.SortStableFunc(spans, func(a, b span) int {
		if a.start == b.start {
			return b.end - a.end
		}
		return a.start - b.start
	})
	s.rows++
	for _, x := range spans {
		if x.start < 0 || x.end <= x.start || x.end > total {
			return nil, nil, fmt.Errorf("the span from %d to %d isn't a part of its text, which has %d characters", x.start, x.end, total)
		}
		s.spans++
		first := slices.IndexFunc(places, func(p place) bool { return p.end > x.start })
		if first < 0 || places[first].start >= x.end || tags[first] != "O" {
			s.lost++
			continue
		}
		last := first
		for last+1 < len(places) && places[last+1].start < x.end {
			last++
		}
		if places[first].start < x.start || places[last].end > x.end {
			s.inside++
		}
		tags[first] = "B-" + x.label
		for i := first + 1; i <= last; i++ {
			tags[i] = "I-" + x.label
		}
	}
	return words, tags, nil
}

// notes says what became of the spans.
func (s *spanReader) notes() (notes []string) {
	if s.rows == 0 {
		return nil
	}
	note := fmt.Sprintf("%s in %s of characters became tags on whole words", text.Count(s.spans, "span"), text.Count(s.rows, "text"))
	if s.inside > 0 {
		note += fmt.Sprintf("; %d begin or end inside a word, which then belongs to them whole", s.inside)
	}
	if s.lost > 0 {
		note += fmt.Sprintf("; %d were left out, because they have no word that isn't another's", s.lost)
	}
	if s.several > 0 {
		note += fmt.Sprintf("; %s with several annotations: the first counts", text.Count(s.several, "text"))
	}
	return []string{note}
}
