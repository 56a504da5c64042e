package rows

import (
	"fmt"
	"hash/maphash"
	"strings"
	"unicode"

	"github.com/heed-go/heed/data"
	"github.com/heed-go/heed/internal/setting"
	"github.com/heed-go/heed/internal/text"
)

// MaxValidation is the greatest number of validation examples.
const MaxValidation = 1 << 24

// Open reads the files of the settings. It sets the checksums, or compares them if they are set. The rows are divided
// with the seed. If the model starts from another run, from is its folder.
func Open(s *data.Settings, f Format, seed uint64, from string) (*Set, error) {
	set := &Set{Description: &Description{File: s.File, format: f, seed: seed, from: from != ""}, format: f, settings: s, seed: seed, from: from}
	if s.SHA256 == "" { // a new run
		s.Stratified = (f.Labels || f.separator() != "") && s.ValidationFile == "" && s.Validation != 0
	}
	t, err := f.readOnce(s, s.File, s.TargetFile, &s.SHA256)
	if err != nil {
		return nil, err
	}
	if t.Keyed && s.Header != "" {
		return nil, setting.Errorf("data file %q is JSONL or CoNLL, which has no header: leave out %s", t.Name, setting.Path("data.header"))
	}
	set.Train = Part{table: t, pairs: f.inputs() == 2, each: f.Texts}
	set.Validation = set.Train
	if s.ValidationFile != "" && s.Validation != 0 {
		set.Validation.table, err = f.readOnce(s, s.ValidationFile, s.ValidationTargetFile, &s.ValidationSHA256)
		set.Description.ValidationFile = s.ValidationFile
	}
	return set, err
}

// Divide divides the rows into training and validation rows. Without a validation file, it holds out the rows of some
// sources. If Validation in the settings is negative, Divide sets it.
func (s *Set) Divide() error {
	for _, t := range s.Tables() {
		s.Description.bad(t)
	}
	table, d := s.Train.table, s.settings
	s.Description.count(table, d.TargetFile)
	fromFile := d.ValidationFile != ""
	switch {
	case d.Validation < 0 && fromFile:
		d.Validation = min(s.Validation.table.Len(), MaxValidation)
	case d.Validation < 0:
		d.Validation = 1000
	}
	held := make([]bool, table.Len())
	if !fromFile && d.Validation > 0 {
		if err := s.holdOut(held); err != nil {
			return err
		}
	}
	for i := range held {
		part := &s.Train
		if held[i] {
			part = &s.Validation
		}
		part.numbers = append(part.numbers, int32(i))
	}
	if fromFile {
		for i := range min(s.Validation.table.Len(), d.Validation) {
			s.Validation.numbers = append(s.Validation.numbers, int32(i))
		}
		if n := s.repeated(); n > 0 {
			s.Description.Warnings = append(s.Description.Warnings, fmt.Sprintf("repeated: %d of %s are training rows too, so the score says less about new rows",
				n, text.Count(len(s.Validation.numbers), "validation row")))
		}
	}
	return nil
}

// repeated returns the number of validation rows that are training rows too.
func (s *Set) repeated() (n int) {
	seed, validates := maphash.MakeSeed(), map[rowHash]int{}
	for i := range s.Validation.numbers {
		validates[hashOf(seed, s.Validation.Example(i))]++
	}
	for i := range s.Train.numbers {
		h := hashOf(seed, s.Train.Example(i))
		n += validates[h]
		delete(validates, h)
	}
	return n
}

// Encode chooses the units, and sets the fields of the rule that depend on the rows: its tokenizers, MaxLen, MaxAnswer
// and Example. It doesn't change settings and fields that are already set. Then it removes the rows that are too long
// or, if answers have no units, cuts them. At the end, it divides the rows into buckets.
func (s *Set) Encode(rule *data.Rule) error {
	if err := s.tokenize(rule); err != nil {
		return err
	}
	if err := s.measure(rule); err != nil {
		return err
	}
	s.Description.Trains, s.Description.Validates = s.Train.Len(), s.Validation.Len()
	rule.Example = s.example()
	return nil
}

// example returns a short source that is easy to type, preferably from the validation rows.
func (s *Set) example() string {
	for _, p := range []Part{s.Validation, s.Train} {
		for i := range p.Len() {
			source := p.Example(i).Source
			odd := func(r rune) bool { return !unicode.IsPrint(r) && !(r == '\t' && p.pairs) }
			if len(source) <= 60 && !strings.HasPrefix(source, "-") && !strings.ContainsFunc(source, odd) {
				return strings.Clone(source)
			}
		}
	}
	if s.Train.pairs {
		return "TEXT\tTEXT"
	}
	return "TEXT"
}
