package train

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/safetensors"
)

// A Group is processes that fit one Problem together: each calls Fit with a Problem, Params, a Config and a Call of
// its own, all alike. It is what they need to exchange.
//
// Calls are made by one goroutine at a time, and by all processes in the same order. When one returns, it neither reads
// nor writes slices any more. Where a process ends, or a call of it fails, after which it makes no other, calls of
// others that wait for it must fail too: nobody waits for good.
type Group interface {
	Rank() int // of this process, from 0
	Size() int // how many processes there are

	// Gather fills all with what each process gives as mine, in the order of their ranks: as many bytes from each.
	Gather(mine, all []byte) error

	// Swap sends slices to another process, the peer, and fills slices with what that sends: it makes the same call at
	// the same time, with this one as its peer, and its slices to receive have the lengths of those sent, one by one.
	// Either list may be empty.
	Swap(peer int, send, receive [][]byte) error
}

// team is a Group as a fit works with it; without one, it is this process alone.
type team struct {
	Group
	rank, size int
	ctx        context.Context
	failed     error // of an exchange, after which there are no more
	resumable  bool  // the last error agreed on ends training so that it can be resumed
}

func newTeam(ctx context.Context, g Group) (*team, error) {
	if g == nil {
		return &team{size: 1, ctx: ctx}, nil
	}
	t := &team{Group: g, rank: g.Rank(), size: g.Size(), ctx: ctx}
	if t.rank < 0 || t.rank >= t.size || t.size > mostMicroBatches {
		return nil, fmt.Errorf("train: a Group has processes from 0 on, got number %d of %d: there may be at most %d", t.rank, t.size, mostMicroBatches)
	}
	return t, nil
}

// agree returns the numbers of all processes, which have as many each, in the order of their ranks. If one of them
// comes with an error, all leave with it.
func (t *team) agree(mine []float64, err error) ([]float64, error) {
	if t.size == 1 {
		return mine, err
	}
	text := ""
	if err != nil {
		text = err.Error()
		text = text[:min(len(text), longestText)]
	}
	message := binary.LittleEndian.AppendUint64(nil, uint64(t.kind(err)))
	message = binary.LittleEndian.AppendUint64(message, uint64(len(text)))
	for _, x := range mine {
		message = binary.LittleEndian.AppendUint64(message, math.Float64bits(x))
	}
	all := make([]byte, t.size*len(message))
	if err := t.gather(message, all); err != nil {
		return nil, err
	}
	word := func(rank, i int) uint64 { return binary.LittleEndian.Uint64(all[rank*len(message)+8*i:]) }
	first := 0 // the first with the gravest error
	for rank := range t.size {
		if word(rank, 0) > word(first, 0) {
			first = rank
		}
	}
	switch kind, length := word(first, 0), word(first, 1); {
	case kind > uint64(len(interruptions))+1 || length > longestText:
		return nil, t.broken(fmt.Errorf("process %d sends what isn't a message", first))
	case kind > 0:
		return nil, t.adopt(first, int(kind), int(length), text, err)
	}
	numbers := make([]float64, 0, t.size*len(mine))
	for rank := range t.size {
		for i := range mine {
			numbers = append(numbers, math.Float64frombits(word(rank, 2+i)))
		}
	}
	return numbers, nil
}

// longestText is how many bytes of an error other processes get.
const longestText = 1 << 16

// adopt returns the error of a process, of a kind and with a text of a length.
func (t *team) adopt(rank, kind, length int, text string, own error) error {
	texts := make([]byte, t.size*length)
	mine := make([]byte, length)
	if rank == t.rank {
		copy(mine, text)
	}
	if err := t.gather(mine, texts); err != nil {
		return err
	}
	t.resumable = kind <= len(interruptions)
	if t.kind(own) == kind {
		return own
	}
	e := &otherError{rank: rank, text: string(texts[rank*length:][:length])}
	if t.resumable {
		e.is = interruptions[kind-1]
	}
	return e
}

// interruptions are the errors that end training so that it can be resumed.
var interruptions = []error{errLimit, context.DeadlineExceeded, context.Canceled}

// kind returns 0 for no error, what follows an interruption's place in interruptions, and what follows that for others.
func (t *team) kind(err error) int {
	if err == nil {
		return 0
	}
	for i, is := range interruptions {
		if errors.Is(err, is) && (is == errLimit || t.ctx.Err() == is) {
			return 1 + i
		}
	}
	return 1 + len(interruptions)
}

// interrupted reports whether an error that all processes have ends training so that it can be resumed.
func (t *team) interrupted(err error) bool {
	if t.size == 1 {
		kind := t.kind(err)
		return kind > 0 && kind <= len(interruptions)
	}
	return err != nil && t.resumable
}

// otherError is the error of another process.
type otherError struct {
	rank int
	text string
	is   error // what it is, if that is an interruption
}

func (e *otherError) Error() string {
	text, whole := strings.CutPrefix(e.text, "train: ")
	text = fmt.Sprintf("process %d of the Group: %s", e.rank, text)
	if whole {
		return "train: " + text
	}
	return text
}

func (e *otherError) Unwrap() error { return e.is }

// gather is Group's Gather, which isn't called again after an error.
func (t *team) gather(mine, all []byte) error {
	if t.failed != nil || len(mine) == 0 {
		return t.failed
	}
	err := t.Gather(mine, all)
	if err == nil && !bytes.Equal(all[t.rank*len(mine):][:len(mine)], mine) {
		err = fmt.Errorf("process %d gathers other bytes than its own", t.rank)
	}
	return t.broken(err)
}

// swap has each process send tensors to every other one and fill others with what it gets.
func (t *team) swap(send, receive func(peer int) []*tensor.Dense) error {
	for round := range t.size { // in each, every process has a peer, or rests
		peer := (round - t.rank + t.size) % t.size
		if peer == t.rank || t.failed != nil {
			continue
		}
		out, in := raw(send(peer)), raw(receive(peer))
		if len(out) > 0 || len(in) > 0 {
			t.broken(t.Swap(peer, out, in))
		}
	}
	return t.failed
}

// broken notes the error of an exchange, if there is one.
func (t *team) broken(err error) error {
	if err != nil {
		t.failed = fmt.Errorf("exchanging with the other processes of the Group: %w", err)
		t.resumable = false
	}
	return t.failed
}

// raw returns the memory of tensors.
func raw(tensors []*tensor.Dense) [][]byte {
	var slices [][]byte
	for _, t := range tensors {
		slices = append(slices, t.Raw)
	}
	return slices
}

// begin has the processes agree that they begin alike, each with a fit or with an error in place of it.
func (t *team) begin(f *fit, err error) error {
	if t.size == 1 {
		return err
	}
	var mine [2]float64
	if err == nil {
		mine = f.digests()
	}
	all, err := t.agree(mine[:], err)
	if err != nil {
		return err
	}
	for rank := range t.size {
		for i, what := range []string{"settings or data", "parameters"} {
			if all[2*rank+i] != all[i] {
				return fmt.Errorf("train: process %d of the Group has other %s than process 0: start the same program with the same arguments in all", rank, what)
			}
		}
	}
	return nil
}

// digests returns a digest of what is to be the same in all processes of a group, and one of their parameters.
func (f *fit) digests() (digests [2]float64) {
	stopping, _ := json.Marshal(f.Stopping) // plain data, already checked
	s := f.solver
	var names []string
	for _, m := range f.train.workers[0].first.metrics {
		names = append(names, m.Name)
	}
	all := fmt.Sprintf("%v %d %d %d %v %q %t %t %q %s", f.settings(), f.MaxEpochs, f.MaxSteps, f.CheckpointSteps, f.CheckpointTime, f.Run, f.Checkpoint != "", f.Resume, names, stopping)
	all += fmt.Sprintf(" %T%+v %v %v %v %v %d %d", s.Rule, s.Rule, s.LearningRate, s.WeightDecay, s.ClipNorm, s.ClipValue, len(s.Groups), s.Steps)
	if f.validation != nil {
		all += fmt.Sprintf(" %d %d", f.validation.plan.size, f.validation.plan.steps)
	}
	for _, n := range f.train.learnables {
		all += fmt.Sprintf(" %q %v %v", n.Name(), n.Dtype(), n.Shape())
	}
	h := fnv.New64a()
	h.Write([]byte(all))
	digests[0] = float64(h.Sum64() >> 11) // 53 bits, which a float64 holds
	h.Reset()
	for _, p := range f.Params.All() {
		fmt.Fprintf(h, "%q %v %v ", p.Name, p.Value.Dtype(), p.Value.Shape())
		h.Write(p.Value.Raw)
	}
	digests[1] = float64(h.Sum64() >> 11)
	return digests
}

// readFile has all processes read a safetensors file, which only the first one needs to see.
func (t *team) readFile(path string) (tensors []safetensors.Tensor, metadata map[string]string, err error) {
	var file bytes.Buffer
	if t.rank == 0 {
		tensors, metadata, err = safetensors.ReadFile(path)
		if err == nil && t.size > 1 {
			err = safetensors.Write(&file, tensors, metadata)
		}
	}
	data, err := t.share(file.Bytes(), err)
	if err != nil || t.size == 1 {
		return tensors, metadata, err
	}
	if t.rank > 0 {
		tensors, metadata, err = safetensors.Read(bytes.NewReader(data), int64(len(data)))
	}
	_, err = t.agree(nil, err)
	return tensors, metadata, err
}

// Share returns in every process of a group what the first one gives: what others give is left alone. If one of them
// has an error, they all get that. Without a group it returns what it is given.
//
// It is for what comes before Fit, as reading files that only the first process sees.
func Share(g Group, data []byte, err error) ([]byte, error) {
	t, wrong := newTeam(context.Background(), g)
	if wrong != nil {
		return nil, wrong
	}
	return t.share(data, err)
}

func (t *team) share(data []byte, err error) ([]byte, error) {
	lengths, err := t.agree([]float64{float64(len(data))}, err)
	if err != nil || t.size == 1 {
		return data, err
	}
	length := lengths[0]
	if length == 0 {
		return nil, nil
	}
	if !(length >= 1 && length < math.MaxInt) {
		return nil, t.broken(fmt.Errorf("process 0 sends a length of %v bytes", length))
	}
	if err := memory.Check(int(length)); err != nil {
		return nil, fmt.Errorf("train: what process 0 shares: %w", err)
	}
	if t.rank > 0 {
		data = make([]byte, int(length))
	}
	whole := []*tensor.Dense{tensor.New(tensor.WithShape(len(data)), tensor.WithBacking(data))}
	fromFirst := func(from int) []*tensor.Dense {
		if from > 0 {
			return nil
		}
		return whole
	}
	return data, t.swap(func(int) []*tensor.Dense { return fromFirst(t.rank) }, fromFirst)
}
