package task

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/heed-go/heed/internal/jsonkeys"
	"github.com/heed-go/heed/train"
	"github.com/heed-go/heed/train/model"
	"github.com/heed-go/heed/train/task/judge"
)

// A Summary is the content of summary.json. Train returns it.
type Summary struct {
	Task         string  `json:"task"`
	Seed         uint64  `json:"seed"`
	Epochs       int     `json:"epochs"`
	BestEpoch    int     `json:"best_epoch"` // epoch of the saved weights
	StoppedEarly bool    `json:"stopped_early"`
	Because      string  `json:"stopped_because"` // reason why training ended, in words
	TrainLoss    float64 `json:"train_loss"`
	Seconds      float64 `json:"seconds"` // that New and Train took
	Params       int     `json:"params"`
	Trained      int     `json:"trained_params,omitempty"` // parameters that a run with a Tune trained; 0 means all

	// ValLoss and ValScore are nil, and missing from the file, if there was no validation, or if they aren't finite:
	// the r2 of one row isn't defined. ValScore is the Value of the Score. In JSON its key is "val_" and then
	// ScoreName, such as val_accuracy. For embed, it is val_mrr or val_spearman, of all validation rows together.
	ValLoss   *float64 `json:"val_loss,omitempty"`
	ValScore  *float64 `json:"val_score,omitempty"`
	ScoreName string   `json:"-"`

	Interval [2]float64 `json:"interval,omitzero"` // 95 % confidence interval of the ValScore, for rows of a file: see judge.Report.Interval

	Baseline map[string]float64 `json:"baseline,omitempty"` // validation metrics of the simple model, by name, such as accuracy; nil if there is none

	// Linear is the weight of the linear model in the answers, from 0 to 1, if they are mixed: see Config.Mix. Then the
	// Answers have the validation metrics of the mixture by name, as the Baseline has those of the linear model, Best
	// has those of the network, and ValLoss and ValScore are the mixture's.
	Linear  *float64           `json:"linear,omitempty"`
	Answers map[string]float64 `json:"answers,omitempty"`

	// Chance is the probability that two equally good models differ on the validation rows at least as much as the
	// model and its baseline do. It is nil if there is no baseline. Guesses reports whether a model that compares two
	// texts is no better than guesses by more than chance.
	Chance  *float64 `json:"chance,omitempty"`
	Guesses bool     `json:"guesses,omitempty"`

	ValLossPerCharacter *float64 `json:"val_loss_per_character,omitempty"` // for text in tokens; comparable between models with different tokenizers

	SHA256        map[string]string `json:"sha256"`                   // checksum of each file by its name; for summary.json: of the Summary without this checksum and Seconds
	WeightsSHA256 string            `json:"weights_sha256,omitempty"` // checksum in the header of model.safetensors, which Open and Load compare

	Best       train.Check `json:"-"` // check of the saved weights
	Score      judge.Score `json:"-"` // validation score, including ValLoss and ValScore
	Unfinished bool        `json:"-"` // a limit or OnStep interrupted training; call Train again to continue
}

// of sets the score of a model on the validation rows, and the fields that have its values.
func (s *Summary) of(m *model.Model, score judge.Score) {
	s.Score, s.ScoreName = score, score.Name
	plain := judge.ScoresOf(m, &score, nil)
	s.ValLoss, s.ValScore, s.ValLossPerCharacter, s.Interval = plain.Loss, plain.Value, plain.LossPerCharacter, plain.Interval
}

// scoreKey is the key of ValScore that MarshalJSON and UnmarshalJSON replace.
const scoreKey = "val_score"

// MarshalJSON encodes a Summary as its documentation says.
func (s Summary) MarshalJSON() ([]byte, error) {
	type plain Summary
	content, err := json.Marshal(plain(s))
	return bytes.Replace(content, []byte(`"`+scoreKey+`":`), []byte(`"val_`+s.ScoreName+`":`), 1), err
}

// UnmarshalJSON replaces the Summary with the one in data. It returns an error if a key is unknown or repeated.
func (s *Summary) UnmarshalJSON(data []byte) error {
	if err := jsonkeys.Check(data, nil); err != nil {
		return err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}
	type plain Summary
	var fields plain
	for key, value := range values {
		if name, ok := strings.CutPrefix(key, "val_"); ok && key != "val_loss" && key != "val_loss_per_character" {
			fields.ScoreName = name
			delete(values, key)
			values[scoreKey] = value
			break // a second key with such a name is unknown
		}
	}
	data, err := json.Marshal(values)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(&fields)
	}
	*s = Summary(fields)
	return err
}
