package report

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Line returns a progress line for a terminal: the epoch, its steps, the steps per second, the times left and the loss.
// It omits less important parts to fit the line into width columns. If unicode is true, it draws a bar and the losses
// with block characters.
func (l *Live) Line(width int, unicode bool) string {
	return line(l.state(), l.losses(16), width, unicode)
}

func line(s state, losses []float64, width int, unicode bool) string {
	epoch := fmt.Sprintf("Epoch %d", s.Epoch)
	if s.Epochs > 0 {
		epoch += fmt.Sprintf(", %d in all", s.Epochs)
	}
	done := 20 * s.Step / s.Steps
	bar, spark := "["+strings.Repeat("#", done)+strings.Repeat("-", 20-done)+"]", ""
	if unicode {
		bar = strings.Repeat("█", done) + strings.Repeat("░", 20-done)
		spark = sparkline(losses)
	}
	var rate, left, total string
	if s.Rate > 0 {
		rate = fmt.Sprintf("%.3g steps/s", s.Rate)
		if s.Rate >= 100 {
			rate = fmt.Sprintf("%.0f steps/s", s.Rate)
		}
		left = "left: " + clock(s.EpochLeft)
	}
	if s.RunLeft >= 0 && s.Epochs != 1 {
		total = "run: " + clock(s.RunLeft)
	}
	// parts has the order on the line. The indices below have the order of importance: the loop ends at the first part
	// that doesn't fit.
	parts := []string{epoch, bar, fmt.Sprintf("%d/%d", s.Step, s.Steps), rate, left, total, fmt.Sprintf("loss %.4g", s.loss), spark}
	shown := make([]string, len(parts))
	for _, i := range []int{0, 2, 4, 5, 6, 3, 7, 1} {
		shown[i] = parts[i]
		if utf8.RuneCountInString(joined(shown)) > width {
			shown[i] = ""
			break
		}
	}
	return joined(shown)
}

// joined joins the parts that aren't empty with spaces.
func joined(parts []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), "  ")
}

// clock formats seconds as 1:02 or 1:02:03.
func clock(seconds float64) string {
	s := int(seconds + 0.5)
	if s < 3600 {
		return fmt.Sprintf("%d:%02d", s/60, s%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}

// sparkline draws numbers as blocks of increasing height, from the smallest number to the largest.
func sparkline(numbers []float64) string {
	if len(numbers) < 2 {
		return ""
	}
	low, high := slices.Min(numbers), slices.Max(numbers)
	var line strings.Builder
	for _, x := range numbers {
		level := 0
		if high > low {
			level = int(7*(x-low)/(high-low) + 0.5)
		}
		line.WriteRune('▁' + rune(level))
	}
	return line.String()
}
