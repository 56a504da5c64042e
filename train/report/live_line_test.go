package report

import (
	"testing"
	"time"

	"github.com/heed-go/heed/train"
)

// What there is no room for isn't shown, and what is left is whole.
func TestLineFits(t *testing.T) {
	l := NewLive(200, train.Config{MaxEpochs: 7})
	stands := standing{epoch: 2, step: 150, loss: 0.037042, rate: 719.4, epochLeft: 62 * time.Second, runLeft: 3602 * time.Second}
	for _, c := range []struct {
		width   int
		unicode bool
		want    string
	}{
		{5, true, ""},
		{10, true, ""},
		{18, true, "Epoch 2, 7 in all"},
		{30, true, "Epoch 2, 7 in all  150/200"},
		{40, true, "Epoch 2, 7 in all  150/200  left: 1:02"},
		{60, false, "Epoch 2, 7 in all  150/200  left: 1:02  run: 1:00:02"},
		{60, true, "Epoch 2, 7 in all  150/200  left: 1:02  run: 1:00:02"},
		{130, true, "Epoch 2, 7 in all  ███████████████░░░░░  150/200  719 steps/s  left: 1:02  run: 1:00:02  loss 0.03704  █▆▄▁"},
		{130, false, "Epoch 2, 7 in all  [###############-----]  150/200  719 steps/s  left: 1:02  run: 1:00:02  loss 0.03704"},
	} {
		if got := l.line(stands, []float64{4, 3, 2, 0.4}, c.width, c.unicode); got != c.want {
			t.Errorf("in %d columns there is %q, want %q", c.width, got, c.want)
		}
	}
	l.config.MaxEpochs = 0
	stands = standing{epoch: 2, step: 1, loss: 2, epochLeft: -1, runLeft: -1}
	if got, want := l.line(stands, []float64{2}, 80, false), "Epoch 2  [--------------------]  1/200  loss 2"; got != want {
		t.Errorf("where nothing is known of the time there is %q, want %q", got, want)
	}
}
