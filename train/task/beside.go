package task

import (
	"fmt"

	"github.com/heed-go/heed/internal/metrics"
	"github.com/heed-go/heed/internal/text"
)

// leastChance is the probability from which a difference may well be chance.
const leastChance = 0.05

// normalChance is the number of standard deviations above the mean that a normal number exceeds with the probability
// leastChance.
const normalChance = 1.645

// BesideBaseline compares the score of a finished training with that of the baseline and, if the answers are mixed,
// with that of the network alone, in a line of text. It says whether the validation rows are too few to tell them apart
// and, if the model isn't better, what to try. Without a baseline or without validation, it returns "".
func (t *Task) BesideBaseline(s *Summary) string {
	baseline, ok := s.Baseline[s.ScoreName]
	if !ok || s.ValScore == nil {
		return ""
	}
	name, score, line := metrics.Spoken(s.ScoreName), *s.ValScore, ""
	switch {
	case s.Linear != nil && t.Config.Solved():
		return fmt.Sprintf("The head is a linear model, which also reads words and characters%s\n", t.advice(s, score))
	case s.Linear != nil:
		line = fmt.Sprintf("The network alone has %s %.4f and the linear model %.4f. The linear model's weight in the answers is %.2f. Compared with it, the model ",
			name, s.Best.Metrics["val_"+s.ScoreName], baseline, *s.Linear)
	default:
		line = fmt.Sprintf("The baseline has %s %.4f, so the model ", name, baseline)
	}
	better := score - baseline
	switch {
	case better > 0:
		line += fmt.Sprintf("is better by %.4f", better)
	case better == 0:
		line += "is as good"
	default:
		line += fmt.Sprintf("is worse by %.4f", -better)
	}
	if s.Chance != nil && *s.Chance > leastChance && better != 0 {
		line += fmt.Sprintf(", but %s are too few to tell them apart", text.Count(len(t.Examples()), "row"))
	}
	if better <= 0 || s.Guesses {
		line += t.advice(s, score)
	}
	return line + "\n"
}

// advice says what would help a model that isn't better than its baseline or than guesses.
func (t *Task) advice(s *Summary, score float64) string {
	switch {
	case score == 1, score == s.Baseline[s.ScoreName] && s.Linear == nil:
		return ""
	case s.Guesses && t.Config.From.Dir == "":
		return ": it is hardly better than guesses; to compare texts, begin with a published model (--from)"
	case t.Config.Solved():
		return ": --tune lora or all learns more, and takes longer"
	case t.hasLinear() && !t.Config.Mix:
		return ": more rows help most; --mix mixes the answers of both"
	}
	return ": more rows help most"
}
