package train_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/heed-go/heed/train"
)

// Whatever line a history has, it is read or refused, and what is read goes to JSON and back.
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
		again, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back train.Check
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("%s isn't read: %v", again, err)
		}
		third, err := json.Marshal(back)
		if err != nil || string(third) != string(again) || reflect.DeepEqual(c, train.Check{}) != reflect.DeepEqual(back, train.Check{}) {
			t.Fatalf("%s becomes %s: %v", again, third, err)
		}
	})
}
