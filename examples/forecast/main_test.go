package main

import (
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heed-go/heed/examples/internal/golden"
	"github.com/heed-go/heed/examples/internal/notebook"
	"github.com/heed-go/heed/internal/must"
)

// TestRun checks that the forecasts are better than all rules of thumb, and that the program draws its picture. With
// -short, it trains for 5 epochs only, and must be better than the seasonal naive rule.
func TestRun(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "deep", "er", "picture.png")
	args, best := []string{"--out", picture, "--watch", "localhost:0"}, "seasonal naive, with trend"
	if testing.Short() {
		args, best = append(args, "--epochs", "5"), "seasonal naive"
	}
	var b strings.Builder
	must.Do(t, run(&b, args))
	golden.Contains(t, b.String(), "Live page: http://127.0.0.1:", "Epoch 0: Train=", "of 97 forecasts\n", picture+"\n")
	page, err := os.ReadFile(strings.TrimSuffix(picture, ".png") + ".html")
	if err != nil || !strings.Contains(string(page), "parameters learned carbon dioxide in the air, two years ahead.") {
		t.Errorf("the page about the training has %d bytes, error %v", len(page), err)
	}
	errors := map[string][]float64{} // for months 1 to 12, 13 to 24, and all
	for _, name := range []string{"naive", "seasonal naive", "seasonal naive, with trend", "the decoder"} {
		_, row, ok := strings.Cut(b.String(), fmt.Sprintf("\n%-26s ", name))
		row, _, _ = strings.Cut(row, "\n")
		numbers, err := notebook.Numbers(row)
		if !ok || err != nil || len(numbers) != 3 {
			t.Fatalf("no row of %s (%v):\n%s", name, err, &b)
		}
		errors[name] = numbers
	}
	for i, off := range errors["the decoder"] {
		if off >= 0.95*errors[best][i] {
			t.Errorf("the decoder's errors are %v, want smaller errors than %s's %v", errors["the decoder"], best, errors[best])
			break
		}
	}
	f := must.Get(os.Open(picture))(t)
	defer f.Close()
	if img, err := png.Decode(f); err != nil || img.Bounds().Dx() < 500 || img.Bounds().Dy() < 250 {
		t.Errorf("the picture isn't a PNG file or has less than 500×250 pixels (error: %v)", err)
	}
}

// TestThumb checks the rules of thumb with series that are easy to continue.
func TestThumb(t *testing.T) {
	for _, c := range []struct {
		name  string
		value func(month int) float32
		off   [3]float32 // error of each rule, 14 months ahead
	}{
		{"constant", func(int) float32 { return 350 }, [3]float32{}},
		{"seasons", func(month int) float32 { return float32(month % 12) }, [3]float32{-2, 0, 0}},
		{"a trend", func(month int) float32 { return float32(month) }, [3]float32{-14, -24, 0}},
		{"both", func(month int) float32 { return float32(month + month%12) }, [3]float32{-16, -24, 0}},
	} {
		series := make([]float32, known+ahead)
		for i := range series {
			series[i] = c.value(i)
		}
		now := known - 10 // the start of a year
		for i, r := range thumb(series) {
			if got := r.forecast(now, 14) - series[now+14]; got != c.off[i] {
				t.Errorf("%s: %s is off by %v, want %v", c.name, r.name, got, c.off[i])
			}
		}
	}
	// Forecasts must not use later months, which are NaN here.
	series := make([]float32, known+ahead)
	for i := known; i < len(series); i++ {
		series[i] = float32(math.NaN())
	}
	for _, r := range thumb(series) {
		for h := 1; h <= ahead; h++ {
			if x := r.forecast(known-1, h); x != 0 {
				t.Errorf("%s: the forecast for %d months ahead is %v, want 0", r.name, h, x)
			}
		}
	}
}

// TestWindows checks the shapes and values of windows, with squares as the series.
func TestWindows(t *testing.T) {
	series := make([]float32, 3+2+ahead)
	for i := range series {
		series[i] = float32(i * i)
	}
	growth, change := windows(series, 3)
	if got := fmt.Sprint(growth.Shape(), change.Shape(), growth.Data()); got != "(2, 3, 1) (2, 3, 24) [1 3 5 3 5 7]" {
		t.Errorf("got %s", got)
	}
	for i, x := range change.Data().([]float32) {
		now := 1 + i/(3*ahead) + i/ahead%3
		if h := 1 + i%ahead; x != float32((now+h)*(now+h)-now*now) {
			t.Errorf("the change from month %[2]d to %[1]d months later is %[3]v, want the difference of the squares", h, now, x)
		}
	}
}

// TestRecord checks that the record has every month from March 1958 to December 2001, and that the parts for training
// and validation end in the right months.
func TestRecord(t *testing.T) {
	series := must.Get(read(record))(t)
	lines := strings.Split(record, "\n")[1:]
	for i, x := range series {
		if month := fmt.Sprintf("%d-%02d,", 1958+(i+2)/12, 1+(i+2)%12); !strings.HasPrefix(lines[i], month) || x < 310 || x > 380 {
			t.Errorf("line %d is %s, want the next month and 310 to 380 ppm", i+2, lines[i])
		}
	}
	if ends := []string{lines[learned-1][:7], lines[known-1][:7], lines[len(series)-1][:7]}; !slices.Equal(ends, []string{"1981-12", "1991-12", "2001-12"}) {
		t.Errorf("training, validation and record end in %v, want 1981-12, 1991-12 and 2001-12", ends)
	}
	for _, text := range []string{"month,co2\n1958-03", "month,co2\n1958-03,\n", "month,co2\n1958-03,316.1\nx,y\n"} {
		must.Refuse(read(text))(t, fmt.Sprintf("line %d", strings.Count(strings.TrimSpace(text), "\n")+1))
	}
}

func TestOwn(t *testing.T) {
	out := filepath.Join(t.TempDir(), "picture.png")
	golden.Calls(t, run, []string{"--window", "12", "--heads", "1", "--epochs", "1", "--out", out}, "-window", "-heads", "-epochs")
}
