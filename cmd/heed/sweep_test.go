package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heed-go/heed/internal/must"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/internal/testseed"
	"github.com/heed-go/heed/train/task"
)

// sweepOf returns the arguments of heed sweep for four short runs, with two rates and two widths.
func sweepOf(dir string, flags ...string) []string {
	runs := []string{"--", "--task=copy", "--learning-rate=1e-4,1e-2", "--dim=8,16", "--heads=2", "--layers=1", "--batch-size=8", "--steps-per-epoch=5", "--max-epochs=3", "--validation=20", "--dropout=0.1"}
	return slices.Concat([]string{"sweep", dir, "--steps=3", "--halving=2"}, flags, runs)
}

// sameSweep checks that two sweeps have the same bytes, except for times and pages.
func sameSweep(t *testing.T, got, want string) {
	t.Helper()
	if g, w := read(t, filepath.Join(got, planFile)), read(t, filepath.Join(want, planFile)); g != w {
		t.Errorf("%s is %q, want %q", planFile, g, w)
	}
	for _, run := range []string{"1", "2", "3", "4"} {
		g, w := folder(t, filepath.Join(got, run)), folder(t, filepath.Join(want, run))
		if _, finished := w[runfolder.SummaryFile]; finished {
			sameRun(t, filepath.Join(got, run), filepath.Join(want, run))
			continue
		}
		for name := range w {
			if g[name] != w[name] && name != runfolder.TimesFile || len(g) != len(w) {
				t.Errorf("run %s: %s differs, or other files do", run, name)
			}
		}
	}
}

// A sweep stops the runs that do worse, and trains the best one as heed train does.
func TestSweep(t *testing.T) {
	testseed.Slow(t)
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "sweep")
	out := succeed(t, sweepOf(dir)...)
	must.Have(t, out, "4 runs, at least 3 steps each:\n", "2 runs, at least 6 steps each:\n", "1 run, to the end:\n", "Report: "+filepath.Join(dir, "report.html")+"\n")
	must.Have(t, read(t, filepath.Join(dir, runfolder.ReportFile)), "4 runs")

	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	command, best := lines[len(lines)-1], strings.Fields(lines[len(lines)-2])[1]
	var taken []int
	for _, run := range []string{"1", "2", "3", "4"} {
		r := must.Get(task.ReadRun(filepath.Join(dir, run)))(t)
		taken = append(taken, r.History[len(r.History)-1].Step)
		if isBest := filepath.Join(dir, run)+"," == best; isBest != (r.Summary != nil) {
			t.Errorf("run %s has the summary %v, and the best run is %s: want a summary only for the best", run, r.Summary, best)
		}
	}
	if slices.Sort(taken); !slices.Equal(taken, []int{5, 5, 10, 15}) {
		t.Errorf("the runs took %v steps, want two with 5, one with 10 and one with 15", taken)
	}
	words := strings.Fields(command)
	if words[0] != "heed" || words[1] != "train" {
		t.Fatalf("the last line is %q, want a command", command)
	}
	alone := filepath.Join(base, "alone")
	succeed(t, append(words[1:], "--out="+alone)...)
	sameRun(t, strings.TrimSuffix(best, ","), alone)

	parallel := filepath.Join(base, "parallel")
	if printed := succeed(t, sweepOf(parallel, "--workers=3")...); strings.ReplaceAll(printed, parallel, dir) != out {
		t.Errorf("with 3 workers, heed sweep prints %q, want %q", printed, out)
	}
	sameSweep(t, parallel, dir)
	prints(t, out, sweepOf(dir, "--workers=2")...)
	sameSweep(t, dir, parallel)

	stopped, whole := filepath.Join(parallel, "1"), filepath.Join(base, "whole")
	succeed(t, "train", "--resume="+stopped)
	succeed(t, "train", "--task=copy", "--learning-rate=1e-4", "--dim=8", "--heads=2", "--layers=1", "--batch-size=8", "--steps-per-epoch=5", "--max-epochs=3", "--validation=20", "--dropout=0.1", "--out="+whole)
	sameRun(t, stopped, whole)

	fail(t, heed(sweepOf(dir, "--steps=6")...), 1, "holds another sweep", planFile, "choose another folder")
	fail(t, heed(sweepOf(base)...), 1, "isn't empty, and holds no sweep")

	interrupted, tries := filepath.Join(base, "interrupted"), 0
	for steps := int64(7); ; steps += 13 {
		c := heedContext(cancelled(t, steps), sweepOf(interrupted)...)
		if c.code == 0 {
			break
		}
		tries++
		fail(t, c, 1, "interrupted: the same command continues the sweep")
	}
	if sameSweep(t, interrupted, dir); tries < 2 {
		t.Errorf("the sweep was interrupted %d times, want at least 2", tries)
	}
}

// A run that diverges loses. The other runs end as they do without it.
func TestSweepDiverges(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "sweep")
	out := succeed(t, "sweep", dir, "--steps=1", "--", "--task=copy", "--dim=8", "--heads=2", "--layers=1", "--batch-size=8", "--steps-per-epoch=12",
		"--max-epochs=2", "--validation=20", "--weight-decay=10", "--clip-norm=0", "--warm-up=0", "--learning-rate=0.01,10")
	must.Have(t, out, "diverged before a check: 1 run\n", "Best: "+filepath.Join(dir, "1")+",")
	all := "sweep " + dir + "2 -- --task=copy --dim=8 --heads=2 --layers=1 --batch-size=8 --steps-per-epoch=12 --max-epochs=2 --validation=20 --weight-decay=10 --clip-norm=0 --warm-up=0 --learning-rate=10"
	fail(t, heed(strings.Fields(all)...), 1, "all runs diverged before their first check: try lower learning rates")
}

// Runs that can't be compared are a wrong call.
func TestSweepOfUnlikeRuns(t *testing.T) {
	t.Parallel()
	fail(t, heed("sweep", t.TempDir()+"/a", "--", "--task=copy,reverse", "--dim=8", "--heads=2", "--layers=1", "--batch-size=8", "--steps-per-epoch=1", "--max-epochs=1", "--validation=20"), 2, "can't be compared")
}

// A flag's list gives a run for each value. Fields of a choice and several files aren't lists.
func TestSweepGrid(t *testing.T) {
	flags := must.Get(variedFlags(strings.Fields("--data a,b --data c --dim 8,16 --solver adamw,muon,learning_rate=0.05,beta2=0.9 --relative-delta --dim=32")))(t)
	got := must.Get(grid(flags))(t)
	if want := [][]string{
		{"", "8", "adamw", "true"}, {"", "8", "muon,learning_rate=0.05,beta2=0.9", "true"}, {"", "16", "adamw", "true"},
		{"", "16", "muon,learning_rate=0.05,beta2=0.9", "true"}, {"", "32", "adamw", "true"}, {"", "32", "muon,learning_rate=0.05,beta2=0.9", "true"},
	}; !slices.EqualFunc(got, want, slices.Equal[[]string]) || !slices.Equal(flags[0].values, []string{"a,b", "c"}) {
		t.Errorf("the combinations are %q with the files %q, want %q with a,b and c", got, flags[0].values, want)
	}
}

// The number of runs is limited.
func TestSweepOfManyRuns(t *testing.T) {
	list := ""
	for i := range 101 {
		list += fmt.Sprintf(",%d", i+1)
	}
	rejected(t, heed("sweep", t.TempDir(), "--", "--seed="+list[1:], "--max-epochs="+list[1:]), 2, "the lists have more than 10000 combinations")
}

// Samples depend on the seed, differ from each other, and are in their ranges; half of the logarithmic ones are below
// the geometric mean.
func TestSweepSamples(t *testing.T) {
	draw := func(seed uint64) (runs []*sweepRun) {
		s := sweep{dir: "x", sweepPlan: sweepPlan{Flags: strings.Fields("--learning-rate=1e-4..1e-2 --dropout=0..0.5 --layers=1..3,7 --batch-size=16"), Samples: 200, Seed: seed}}
		must.Do(t, s.plan())
		return s.runs
	}
	runs, low := draw(1), 0
	seen := map[string]bool{}
	for i, r := range runs {
		var rate, dropout, layers float64
		for _, flag := range r.varied {
			name, value, _ := strings.Cut(flag, "=")
			x := must.Get(strconv.ParseFloat(value, 64))(t)
			*map[string]*float64{"--learning-rate": &rate, "--dropout": &dropout, "--layers": &layers}[name] = x
		}
		if rate < 1e-4 || rate > 1e-2 || dropout < 0 || dropout > 0.5 || !slices.Contains([]float64{1, 2, 3, 7}, layers) || r.config.Training.Optimizer.LearningRate != rate || r.config.Model.Layers != int(layers) {
			t.Errorf("run %d has the flags %q, want values in the ranges, and a configuration with them", i, r.flags)
		}
		if rate < 1e-3 {
			low++
		}
		seen[fmt.Sprint(r.flags)] = true
	}
	if len(seen) != 200 || math.Abs(float64(low)-100) > 35 || runs[0].dir != filepath.Join("x", "001") {
		t.Errorf("%d samples differ, %d rates are below 0.001, and the first folder is %s: want 200, about 100, and x/001", len(seen), low, runs[0].dir)
	}
	flagsOf := func(runs []*sweepRun) (flags []string) {
		for _, r := range runs {
			flags = append(flags, r.flags...)
		}
		return flags
	}
	if same, other := flagsOf(draw(1)), flagsOf(draw(2)); !slices.Equal(same, flagsOf(runs)) || slices.Equal(other, same) {
		t.Error("the samples of one seed must be the same, and those of two seeds must differ")
	}
	s := sweep{sweepPlan: sweepPlan{Flags: []string{"--dim=8,16", "--data=a", "--data=b", "--task=text"}, Samples: 50}}
	if must.Do(t, s.plan()); len(s.runs) != 2 {
		t.Errorf("50 samples of a list of two values give %d runs, want 2", len(s.runs))
	}
	absent(t, "x")
}
