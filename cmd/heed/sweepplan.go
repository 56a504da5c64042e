package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/heed-go/heed/internal/atomicfile"
	"github.com/heed-go/heed/internal/runfolder"
	"github.com/heed-go/heed/train/task"
)

// planFile is the name of the file that says which sweep is in a folder.
const planFile = "sweep.json"

// A sweepPlan has the settings that decide the result of a sweep. It is the content of sweep.json.
type sweepPlan struct {
	Flags   []string `json:"flags"` // of heed train, with lists and ranges
	Samples int      `json:"samples,omitempty"`
	Seed    uint64   `json:"seed"`
	Steps   int      `json:"steps"`
	Halving int      `json:"halving"`
}

// A variedFlag is a flag of heed train with all its values.
type variedFlag struct {
	*pflag.Flag          // as heed train declares it
	values      []string // for a flag that takes several values: all of them, for each run
}

// set adds the values of a list, which commas separate. For a choice such as muon,learning_rate=0.05, a part with an
// equals sign belongs to the part before it.
func (f *variedFlag) set(list string) error {
	if f.several() {
		f.values = append(f.values, list)
		return nil
	}
	for i, part := range strings.Split(list, ",") {
		if last := len(f.values) - 1; i > 0 && f.Value.Type() == kindName && strings.Contains(part, "=") {
			f.values[last] += "," + part
			continue
		}
		f.values = append(f.values, part)
	}
	return nil
}

// several reports whether one run may have several values of the flag. Such a flag has no list of values to try.
func (f *variedFlag) several() bool {
	_, ok := f.Value.(pflag.SliceValue)
	return ok
}

// ends returns the ends of a range such as 1e-4..1e-2. For any other value, ok is false.
func (f *variedFlag) ends(value string) (low, high float64, ok bool) {
	first, second, found := strings.Cut(value, "..")
	if !found || !slices.Contains([]string{"int", "uint64", "float64"}, f.Value.Type()) {
		return 0, 0, false
	}
	low, err1 := strconv.ParseFloat(first, 64)
	high, err2 := strconv.ParseFloat(second, 64)
	return low, high, err1 == nil && err2 == nil && low < high && !math.IsInf(high-low, 0)
}

// draw returns a random value of the flag, or "" if one run has all its values.
func (f *variedFlag) draw(rng *rand.Rand) string {
	if f.several() {
		return ""
	}
	value := f.values[rng.IntN(len(f.values))]
	low, high, ok := f.ends(value)
	if !ok {
		return value
	}
	x := low + rng.Float64()*(high-low)
	if low > 0 {
		x = low * math.Pow(high/low, rng.Float64())
	}
	if f.Value.Type() == "float64" {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	return strconv.FormatFloat(math.Round(x), 'f', 0, 64)
}

// variedFlags parses flags of heed train, with lists and ranges.
func variedFlags(args []string) ([]*variedFlag, error) {
	s, _ := defaults(task.Names()[0], 0)
	trainCommand := newTrain(nil)
	trainCommand.Use = "heed train"
	list := pflag.NewFlagSet("", pflag.ContinueOnError)
	list.SortFlags = false
	found := map[string]*variedFlag{}
	s.flagSet().VisitAll(func(f *pflag.Flag) {
		flag := &variedFlag{Flag: f}
		found[f.Name] = flag
		list.VarPF(&parsed{kind: f.Value.Type(), read: flag.set}, f.Name, "", "").NoOptDefVal = f.NoOptDefVal
	})
	if err := list.Parse(args); err != nil {
		if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) && trainCommand.Flags().Lookup(unknown.GetSpecifiedName()) != nil {
			return nil, usagef("--%s can't be given to the runs of a sweep, which decides about folders and limits: leave it out", unknown.GetSpecifiedName())
		}
		return nil, flagError(trainCommand, err)
	}
	if list.NArg() > 0 {
		return nil, usagef("after the two dashes, heed sweep takes flags of heed train, got %q: write lists without spaces", list.Arg(0))
	}
	var given []*variedFlag
	list.Visit(func(f *pflag.Flag) {
		flag := found[f.Name]
		if seen := map[string]bool{}; !flag.several() {
			flag.values = slices.DeleteFunc(flag.values, func(value string) bool {
				repeated := seen[value]
				seen[value] = true
				return repeated
			})
		}
		given = append(given, flag)
	})
	return given, nil
}

// plan makes the runs of the sweep.
func (s *sweep) plan() error {
	flags, err := variedFlags(s.Flags)
	if err != nil {
		return err
	}
	var combinations [][]string
	if s.Samples > 0 {
		combinations = sampled(flags, s.Samples, rand.New(rand.NewPCG(s.Seed, 0)))
	} else if combinations, err = grid(flags); err != nil {
		return err
	}
	digits := len(strconv.Itoa(len(combinations)))
	for i, values := range combinations {
		r := &sweepRun{dir: filepath.Join(s.dir, fmt.Sprintf("%0*d", digits, i+1))}
		for j, f := range flags {
			if f.several() {
				for _, value := range f.values {
					r.flags = append(r.flags, "--"+f.Name+"="+value)
				}
				continue
			}
			flag := "--" + f.Name + "=" + values[j]
			r.flags = append(r.flags, flag)
			if len(f.values) > 1 || f.values[0] != values[j] {
				r.varied = append(r.varied, flag)
			}
		}
		if err := r.configure(); err != nil {
			return err
		}
		s.runs = append(s.runs, r)
	}
	return nil
}

// mostRuns is the greatest number of runs in a sweep.
const mostRuns = 10000

// grid returns all combinations of values, one value per flag. The values of the last flag change fastest.
func grid(flags []*variedFlag) ([][]string, error) {
	combinations := [][]string{nil}
	for _, f := range flags {
		values := f.values
		if f.several() {
			values = []string{""}
		}
		for _, value := range values {
			if _, _, ok := f.ends(value); ok {
				return nil, usagef("--%s has a range, %s: say with --samples how many combinations to draw, or give a list", f.Name, value)
			}
		}
		var longer [][]string
		for _, c := range combinations {
			for _, value := range values {
				longer = append(longer, append(slices.Clone(c), value))
			}
		}
		if combinations = longer; len(combinations) > mostRuns {
			return nil, usagef("the lists have more than %d combinations: shorten them, or draw some combinations with --samples", mostRuns)
		}
	}
	return combinations, nil
}

// sampled returns up to n different random combinations. There are fewer if no others are drawn within 100·n attempts.
func sampled(flags []*variedFlag, n int, rng *rand.Rand) (combinations [][]string) {
	seen := map[string]bool{}
	for range 100 * n {
		values := make([]string, len(flags))
		for i, f := range flags {
			values[i] = f.draw(rng)
		}
		if key := fmt.Sprintf("%q", values); !seen[key] {
			seen[key] = true
			combinations = append(combinations, values)
		}
		if len(combinations) == n {
			break
		}
	}
	return combinations
}

// configure sets the configuration of a run from its flags, as heed train does.
func (r *sweepRun) configure() error {
	s, _ := defaults(task.Names()[0], 0)
	cmd := &cobra.Command{Use: "train"}
	cmd.Flags().AddFlagSet(s.flagSet())
	err := cmd.Flags().Parse(r.flags)
	if err != nil {
		return flagError(cmd, err)
	}
	r.config, err = s.fromFlags(cmd.Flags())
	if t := r.config.Training; err == nil && t.MaxEpochs == 0 && t.Stopping.Patience == 0 {
		err = usagef("the runs have no end: set --max-epochs or --patience above 0")
	}
	if err == nil {
		err = wrongFlag(r.config.Check(), cmd.Flags())
	}
	return err
}

// begin writes the plan into a new folder. It returns an error if the folder holds another sweep or other files.
func (s *sweep) begin() error {
	content, err := json.MarshalIndent(s.sweepPlan, "", "  ")
	if err != nil {
		return err
	}
	content = append(content, '\n')
	found, err := runfolder.At(s.dir).Read(planFile, 1<<20)
	switch {
	case err == nil && bytes.Equal(found, content):
		return nil
	case err == nil:
		return fmt.Errorf("%s holds another sweep, which %s describes: choose another folder, or repeat that sweep's command to continue it", s.dir, filepath.Join(s.dir, planFile))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if files, err := os.ReadDir(s.dir); err == nil && len(files) > 0 {
		return fmt.Errorf("%s isn't empty, and holds no sweep: choose another folder", s.dir)
	}
	if err := os.MkdirAll(s.dir, 0o777); err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(s.dir, planFile), func(w io.Writer) error { _, err := w.Write(content); return err })
}

// A sweep is one call of heed sweep.
type sweep struct {
	sweepPlan
	dir     string
	workers int
	runs    []*sweepRun
}

// A sweepRun is one of the runs of a sweep.
type sweepRun struct {
	dir      string
	flags    []string // of heed train
	varied   []string // the flags that differ between runs
	config   task.Config
	diverged bool // whether its last training ended with a loss that isn't finite
}
