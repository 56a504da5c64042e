package published

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/heed-go/heed/data/tokenizer/internal/format"
	"github.com/heed-go/heed/data/tokenizer/internal/pipe"
)

// A template adds special tokens to one text, or to two, and gives each token a type. Its zero value adds nothing.
type template struct {
	single, pair []templateItem

	trim  bool // the parts of tokens leave out white space at their ends
	keeps bool // with trim: the first space of the first token doesn't count, because ByteLevel added it
}

// A templateItem stands for the tokens of a text, or for special tokens.
type templateItem struct {
	text int   // 0 or 1: the first or the second text; -1 for special tokens
	ids  []int // ids of the special tokens
	typ  int
}

// parseTemplate makes the template from the post_processor of a tokenizer.json.
func parseTemplate(part json.RawMessage) (t template, err error) {
	t = template{single: []templateItem{{text: 0}}, pair: []templateItem{{text: 0}, {text: 1, typ: 1}}}
	typ, err := format.TypeOf(part)
	if typ == "" || err != nil {
		return t, err
	}
	var file struct {
		Type        string                 `json:"type"`
		Processors  []json.RawMessage      `json:"processors"`
		Single      []templateJSON         `json:"single"`
		Pair        []templateJSON         `json:"pair"`
		Special     map[string]specialJSON `json:"special_tokens"`
		Sep         namedID                `json:"sep"`
		Cls         namedID                `json:"cls"`
		Trim        *bool                  `json:"trim_offsets"` // if it is missing, true
		PrefixSpace *bool                  `json:"add_prefix_space"`
		Regex       json.RawMessage        `json:"use_regex"`
	}
	if err := format.Decode(part, &file); err != nil {
		return t, err
	}
	special := func(typ int, ids ...int) templateItem { return templateItem{-1, ids, typ} }
	first, second := templateItem{text: 0}, templateItem{text: 1}
	trims, keeps := file.Trim == nil || *file.Trim, file.PrefixSpace == nil || *file.PrefixSpace
	switch typ {
	case "Sequence":
		for i, part := range file.Processors {
			next, err := parseTemplate(part)
			if err != nil {
				return t, fmt.Errorf("its processor %d (from 0): %w", i, err)
			}
			if len(next.single) > 1 {
				if len(t.single) > 1 {
					return t, errors.New("two of its processors add special tokens, which isn't supported")
				}
				t.single, t.pair = next.single, next.pair
			}
			if next.trim {
				t.trim, t.keeps = true, next.keeps
			}
		}
	case "ByteLevel":
		t.trim, t.keeps = trims, keeps
	case "BertProcessing":
		t.single = []templateItem{special(0, int(file.Cls)), first, special(0, int(file.Sep))}
		second.typ = 1
		t.pair = append(t.single[:3:3], second, special(1, int(file.Sep)))
	case "RobertaProcessing":
		t.trim, t.keeps = trims, keeps
		t.single = []templateItem{special(0, int(file.Cls)), first, special(0, int(file.Sep))}
		t.pair = append(t.single[:3:3], special(0, int(file.Sep)), second, special(0, int(file.Sep)))
	case "TemplateProcessing":
		if t.single, err = templateItems(file.Single, file.Special, 1); err == nil {
			t.pair, err = templateItems(file.Pair, file.Special, 2)
		}
	default:
		err = format.Unsupported(typ)
	}
	return t, err
}

// templateJSON is an element of a TemplateProcessing.
type templateJSON struct {
	Sequence *struct {
		ID  string `json:"id"`
		Typ int    `json:"type_id"`
	}
	SpecialToken *struct {
		ID  string `json:"id"`
		Typ int    `json:"type_id"`
	}
}

// specialJSON has the ids of a special token of a TemplateProcessing.
type specialJSON struct {
	ID     string   `json:"id"`
	IDs    []int    `json:"ids"`
	Tokens []string `json:"tokens"`
}

// namedID is an id in the form ["[SEP]", 102].
type namedID int

func (id *namedID) UnmarshalJSON(value []byte) error {
	var pair []json.RawMessage
	if err := json.Unmarshal(value, &pair); err != nil || len(pair) != 2 || json.Unmarshal(pair[1], (*int)(id)) != nil {
		return fmt.Errorf("expected a token and its id, got %.100s", value)
	}
	return nil
}

// templateItems returns the items of a template for one text or two. The argument texts is their number.
func templateItems(file []templateJSON, special map[string]specialJSON, texts int) ([]templateItem, error) {
	var items []templateItem
	seen := [2]bool{}
	for _, f := range file {
		switch {
		case f.Sequence != nil && f.SpecialToken == nil:
			text := strings.Index("AB", f.Sequence.ID)
			if text < 0 || len(f.Sequence.ID) != 1 || text >= texts || seen[text] {
				return nil, fmt.Errorf("a template for %d texts must have each text once, got %.100q", texts, f.Sequence.ID)
			}
			seen[text] = true
			items = append(items, templateItem{text: text, typ: f.Sequence.Typ})
		case f.SpecialToken != nil && f.Sequence == nil:
			tokens, ok := special[f.SpecialToken.ID]
			if !ok {
				return nil, fmt.Errorf("its special_tokens lack %.100q", f.SpecialToken.ID)
			}
			items = append(items, templateItem{-1, tokens.IDs, f.SpecialToken.Typ})
		default:
			return nil, errors.New("each element of a template must be a Sequence or a SpecialToken")
		}
	}
	for text := range texts {
		if !seen[text] {
			return nil, fmt.Errorf("a template for %d texts must have each text once, got none for %q", texts, "AB"[text])
		}
	}
	return items, nil
}

// maxSpecial is the maximum number of special tokens that a template adds.
const maxSpecial = 1 << 10

// specials returns the number of special tokens of a template.
func specials(items []templateItem) int {
	n := 0
	for _, item := range items {
		n += len(item.ids)
	}
	return n
}

// truncation says how a long Input is cut. Its zero value is no limit.
type truncation struct {
	length   int
	strategy string // "LongestFirst", "OnlyFirst" or "OnlySecond"
	left     bool   // cut the start of a text instead of its end
}

func parseTruncation(part json.RawMessage) (truncation, error) {
	if len(part) == 0 || string(part) == "null" {
		return truncation{}, nil
	}
	var file struct {
		Direction string `json:"direction"`
		Length    int    `json:"max_length"`
		Strategy  string `json:"strategy"`
		Stride    int    `json:"stride"`
	}
	if err := format.Decode(part, &file); err != nil {
		return truncation{}, err
	}
	if file.Direction != "" && file.Direction != "Left" && file.Direction != "Right" {
		return truncation{}, fmt.Errorf("its direction must be Left or Right, got %.100q", file.Direction)
	}
	switch file.Strategy {
	case "LongestFirst", "OnlyFirst", "OnlySecond":
	default:
		return truncation{}, fmt.Errorf("its strategy must be LongestFirst, OnlyFirst or OnlySecond, got %.100q", file.Strategy)
	}
	if file.Length < 1 {
		return truncation{}, fmt.Errorf("its max_length must be at least 1, got %d", file.Length)
	}
	return truncation{file.Length, file.Strategy, file.Direction == "Left"}, nil
}

// cut shortens the tokens of one text or two. Together with this number of other tokens, t.length of them remain at
// most.
func (t truncation) cut(tokens [][]pipe.Token, others int) error {
	if t.length == 0 {
		return nil
	}
	total, room := 0, max(0, t.length-others)
	for _, text := range tokens {
		total += len(text)
	}
	if total <= room {
		return nil
	}
	keep := func(i, n int) {
		if t.left {
			tokens[i] = tokens[i][len(tokens[i])-n:]
		} else {
			tokens[i] = tokens[i][:n]
		}
	}
	switch {
	case room == 0:
		for i := range tokens {
			keep(i, 0)
		}
	case len(tokens) == 1 && t.strategy == "OnlySecond":
		return fmt.Errorf("the text has %d tokens, but there is room for %d, and the truncation's strategy OnlySecond cuts only a second text", total, room)
	case len(tokens) == 1:
		keep(0, room)
	case t.strategy == "LongestFirst":
		short, long := 0, 1
		if len(tokens[0]) > len(tokens[1]) {
			short, long = 1, 0
		}
		n := min(len(tokens[short]), room/2)
		keep(long, room-n)
		keep(short, n)
	default:
		i := strings.Index("FirstSecond", strings.TrimPrefix(t.strategy, "Only")) / len("First")
		n := len(tokens[i]) - (total - room)
		if n <= 0 {
			return fmt.Errorf("the %s text is too short to be cut: both texts have %d tokens, but there is room for %d", [...]string{"first", "second"}[i], total, room)
		}
		keep(i, n)
	}
	return nil
}
