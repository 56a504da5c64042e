package train

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"reflect"
	"strings"

	"github.com/heed-go/heed/layers"
	"github.com/heed-go/heed/train/optim"
)

// settings must not change when training resumes, because the results of later steps depend on them. Errors have the
// name of a field, or its other name if it has one.
type settings struct {
	Examples     int              `json:"examples" name:"Train.Len"`
	BatchSize    int              `json:"batch_size"`
	MicroBatches int              `json:"micro_batches"`
	CheckEvery   int              `json:"check_every"`
	Precision    layers.Precision `json:"precision,omitzero"`
	Validation   int              `json:"validation" name:"Validation.Len"`
	Rule         string           `json:"rule" name:"rule"` // type of the solver's Rule

	Seed  uint64 `json:"seed"`
	Order Order  `json:"order"`
	Steps int    `json:"epoch" name:"steps in an epoch"` // they also depend on the buckets

	Average float64             `json:"average,omitempty"`
	Plateau optim.PlateauConfig `json:"plateau,omitzero"`
}

// unlike returns the differences between r and other, in words, or the empty string.
func (r settings) unlike(other settings) string {
	var differ []string
	others := reflect.ValueOf(other)
	for f, mine := range reflect.ValueOf(r).Fields() {
		if that := others.FieldByIndex(f.Index); !mine.Equal(that) {
			differ = append(differ, fmt.Sprintf("%s %+v, not %+v", cmp.Or(f.Tag.Get("name"), f.Name), mine, that))
		}
	}
	return strings.Join(differ, "; ")
}

func (f *fit) settings() settings {
	r := settings{
		Examples: f.Train.Len, BatchSize: f.BatchSize, MicroBatches: f.train.micro, CheckEvery: f.CheckEvery, Precision: f.Precision,
		Validation: f.Validation.Len, Seed: f.Seed, Order: f.Train.Order, Steps: f.plan.steps,
		Average: f.Optimizer.Average, Plateau: f.Optimizer.Plateau,
	}
	if f.solver != nil {
		r.Rule = fmt.Sprintf("%T", cmp.Or(f.solver.Rule, optim.Rule(optim.AdamW{})))
	}
	return r
}

// begin checks that all processes start with the same settings, data and parameters. If err isn't nil, f may be nil.
func (t *team) begin(f *fit, err error) error {
	if t.size == 1 {
		return err
	}
	var mine [2]float64
	if err == nil {
		mine = f.digests()
	}
	gathered, err := t.agree(mine[:], err)
	if err != nil {
		return err
	}
	for rank := range t.size {
		for i, what := range []string{"settings or data", "parameters"} {
			if gathered[2*rank+i] != gathered[i] {
				return fmt.Errorf("train: process %d of the Group and process 0 have different %s: start the same program with the same arguments in all processes", rank, what)
			}
		}
	}
	return nil
}

// digests returns one digest of the settings and the data, and one of the parameters. Both must be the same in all
// processes.
func (f *fit) digests() (digests [2]float64) {
	stopping, _ := json.Marshal(f.Stopping) // plain data, so there is no error
	s := f.solver
	var names []string
	for _, m := range f.train.workers[0].first.metrics {
		names = append(names, fmt.Sprint(m.Name, m.size()))
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%v %d %d %d %v %q %t %t %q %s", f.settings(), f.MaxEpochs, f.MaxSteps, f.CheckpointSteps, f.CheckpointTime, f.Run, f.Checkpoint != "", f.Resume, names, stopping)
	fmt.Fprintf(h, " %T%+v %v %v %v %v %d %d", s.Rule, s.Rule, s.LearningRate, s.WeightDecay, s.ClipNorm, s.ClipValue, len(s.Groups), s.Steps)
	if f.validation != nil {
		fmt.Fprintf(h, " %d %d", f.validation.plan.size, f.validation.plan.steps)
	}
	for _, n := range f.train.learnables {
		fmt.Fprintf(h, " %q %v %v", n.Name(), n.Dtype(), n.Shape())
	}
	digests[0] = float64(h.Sum64() >> 11) // 53 bits, which a float64 holds
	h.Reset()
	for _, p := range f.Params.All() {
		fmt.Fprintf(h, "%q %v %v %s ", p.Name, p.Value.Dtype(), p.Value.Shape(), checksum(p))
	}
	digests[1] = float64(h.Sum64() >> 11)
	return digests
}

// frozenSums returns the checksums of the frozen parameters, by their names.
func frozenSums(p *layers.Params) map[string]string {
	sums := map[string]string{}
	for _, q := range p.All() {
		if q.Frozen {
			sums[q.Name] = checksum(q)
		}
	}
	return sums
}

// checksum returns a checksum of a parameter's values.
func checksum(q *layers.Param) string {
	return fmt.Sprintf("%08x", crc32.Checksum(q.Value.Raw, crc32.MakeTable(crc32.Castagnoli)))
}
