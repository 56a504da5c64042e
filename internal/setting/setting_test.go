package setting_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/setting"
)

func TestError(t *testing.T) {
	above := setting.Errorf("above %s, got %d, %w", setting.Path("schedule.warm_up"), 3, errors.New("too few"))
	inner := setting.Errorf("%s must be %w", setting.Path("schedule.decay"), above) // an Error in an Error
	err := setting.Within("training", setting.Within("optimizer", fmt.Errorf("optim: %w", inner)))
	const want = "training.optimizer.schedule.decay must be above training.optimizer.schedule.warm_up, got 3, too few"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	var e *setting.Error
	if !errors.As(err, &e) {
		t.Fatalf("got a %T, want a *setting.Error", err)
	}
	if paths := []string{"training.optimizer.schedule.decay", "training.optimizer.schedule.warm_up"}; !slices.Equal(e.Paths(), paths) {
		t.Errorf("paths %q, want %q", e.Paths(), paths)
	}
	flag := func(path string) string {
		return "--" + strings.ReplaceAll(path[strings.LastIndex(path, ".")+1:], "_", "-")
	}
	if got := e.Message(flag); got != "--decay must be above --warm-up, got 3, too few" {
		t.Errorf("with the names of flags: got %q", got)
	}
	if inner.Error() != "schedule.decay must be above schedule.warm_up, got 3, too few" {
		t.Errorf("Within changed the inner error to %q", inner)
	}
	other := errors.New("other")
	if setting.Within("x", other) != other || setting.Within("x", nil) != nil {
		t.Error("Within changed nil or an error of another type")
	}
}
