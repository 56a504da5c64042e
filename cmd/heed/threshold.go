package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/heed-go/heed/train/model"
)

// noAnswerFlag declares --no-answer.
func noAnswerFlag(f *pflag.FlagSet, allowed *bool) {
	f.BoolVar(allowed, "no-answer", false, "for a published model that answers questions: it may say that the context has no answer, as after training on SQuAD 2.0 (default: only if a run learned such questions)")
}

// thresholdFlag declares --threshold.
func thresholdFlag(f *pflag.FlagSet, t *model.Threshold) {
	f.Var(threshold{t}, "threshold", "with two labels: answer one of them if its probability is at least a number, such as fraud=0.2 (default: the likelier label)")
}

// threshold is the value of --threshold: a label and a probability.
type threshold struct{ *model.Threshold }

func (t threshold) Type() string { return "label=probability" }

func (t threshold) String() string {
	if t.Threshold == nil || *t.Threshold == (model.Threshold{}) { // pflag asks for the text of a zero value
		return ""
	}
	return fmt.Sprintf("%s=%v", t.Label, t.P)
}

func (t threshold) Set(text string) error {
	i := strings.LastIndex(text, "=") // a label may have an equals sign
	if i < 1 {
		return errors.New("it has no label")
	}
	p, err := strconv.ParseFloat(text[i+1:], 64)
	if err != nil {
		return errors.New("the probability isn't a number")
	}
	*t.Threshold = model.Threshold{Label: text[:i], P: p}
	return nil
}
