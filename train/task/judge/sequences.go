package judge

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/heed-go/heed/data/tokenizer"
	"github.com/heed-go/heed/train/model"
)

// sequences judges answers of any length.
type sequences struct{ classes }

// judge adds the edits, chrF and BLEU of an answer.
func (sequences) judge(m *model.Model, r *Report, j *Judged) {
	answer, references := r.compare(m, j)
	before := r.Errors.Edits
	r.Errors.Add(answer, references...)
	j.Edits = r.Errors.Edits - before
	r.ChrF.Add(j.Answer.Text, j.References...)
	r.BLEU.Add(j.Answer.Text, j.References...)
}

func (sequences) scores(r *Report, s *Scores) {
	exact{}.scores(r, s)
	s.ErrorRate, s.Edits = finite(r.Errors.Value()), &r.Errors.Edits
	s.ChrF, s.BLEU = finite(r.ChrF.Value()), finite(r.BLEU.Value())
}

func (sequences) write(r *Report, w io.Writer) {
	unit, bleu := string(r.Units), fmt.Sprintf("%.2f", r.BLEU.Value())
	if r.Units == tokenizer.BPE || r.Units == tokenizer.Published {
		unit = "words"
	}
	if r.BLEU.Value() == 0 && !slices.ContainsFunc(r.Judged, func(j Judged) bool { return len(strings.Fields(j.Answer.Text)) >= 4 }) {
		bleu = "none, as no answer has four words" // BLEU counts runs of up to four words
	}
	exact{}.write(r, w)
	fmt.Fprintf(w, "Error rate: %.4f (%d edits; the nearest references have %d %s)\n", r.Errors.Value(), r.Errors.Edits, r.Errors.Units, unit)
	fmt.Fprintf(w, "chrF: %.2f, BLEU: %s\n", r.ChrF.Value(), bleu)
}
