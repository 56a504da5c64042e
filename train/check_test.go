package train_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/train"
)

// Decoding a line as a Check returns an error, or a Check that is the same after encoding and decoding it again.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"epoch":0,"step":20,"learning_rate":0.003,"gradient_norm":1.5,"train_loss":0.457,"val_loss":0.3,"val_accuracy":0.9,"train_accuracy":0.8}`,
		`{"epoch":1e300,"step":-1,"train_loss":"NaN","val_loss":"+Inf"}`, `{"train_loss":"-Inf","train_loss":1}`, `{}`, `null`, `[]`, `{"epoch":"x"}`, `{"":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var c train.Check
		if json.Unmarshal(line, &c) != nil {
			return
		}
		_ = c.String()
		again := must.Get(json.Marshal(c))(t)
		var back train.Check
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("the output %s can't be decoded: %v", again, err)
		}
		third, err := json.Marshal(back)
		if err != nil || string(third) != string(again) || reflect.DeepEqual(c, train.Check{}) != reflect.DeepEqual(back, train.Check{}) {
			t.Fatalf("decoding and encoding %s gives %s, %v, want no change", again, third, err)
		}
	})
}

func TestDecimals(t *testing.T) {
	for x, want := range map[float64]string{
		0.457: "0.457", 0.000457: "0.000457", 0.0457: "0.0457", 12.3456: "12.346", 0: "0.000", -0.00123: "-0.00123", 1: "1.000",
		0.1: "0.100", 0.09996: "0.1000", 4.5e-12: "4.50e-12",
	} {
		if got := (train.Check{TrainLoss: x}).String(); got != "Epoch 0: Train="+want {
			t.Errorf("the loss %v is printed as %q, want %q", x, got, want)
		}
	}
}
