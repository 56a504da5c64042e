package train

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"

	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/memory"
	"github.com/heed-go/heed/internal/safetensors"
)

// A Group connects processes that fit one Problem together. Each process calls Fit with its own Problem, Params, Config
// and RunOptions. The data and the settings must be the same in all processes. The methods of Group exchange data
// between the processes.
//
// In each process, one goroutine at a time calls methods, and all processes make the same calls in the same order.
// After a method has returned, it neither reads nor writes the slices. After an error, a process makes no more calls.
// If a process ends or has an error, the calls that wait for it in other processes must fail too, so that no process
// waits forever.
type Group interface {
	Rank() int // number of this process, from 0
	Size() int // number of processes

	// Gather exchanges data between all processes. It fills gathered with the bytes of every process's mine, in
	// the order of their ranks. The length of mine is the same in every process.
	Gather(mine, gathered []byte) error

	// Swap exchanges slices with process number peer, which calls Swap at the same time with this process as its peer.
	// Swap sends the slices in send, and fills the slices in receive with what the peer sends. Each slice has the same
	// length in both processes. Either list may be empty.
	Swap(peer int, send, receive [][]byte) error
}

// mostMicroBatches is the limit for micro-batches per step, and for processes in a Group.
const mostMicroBatches = 1 << 20

// team wraps the Group of a fit. Without a Group, it has this process alone.
type team struct {
	Group
	rank, size int
	ctx        context.Context
	failed     error // error of an exchange; afterwards there are no more exchanges
	resumable  bool  // whether training can be resumed after the last error that agree returned
}

func newTeam(ctx context.Context, g Group) (*team, error) {
	if g == nil {
		return &team{size: 1, ctx: ctx}, nil
	}
	t := &team{Group: g, rank: g.Rank(), size: g.Size(), ctx: ctx}
	if t.rank < 0 || t.rank >= t.size || t.size > mostMicroBatches {
		return nil, fmt.Errorf("train: the Rank of a Group must be from 0 to Size − 1, got Rank %d and Size %d: Size may be at most %d", t.rank, t.size, mostMicroBatches)
	}
	return t, nil
}

// agree exchanges numbers and errors between all processes. It returns the numbers of all processes, in the order of
// their ranks. The length of mine is the same in every process. If one process has an error, agree returns this error
// in all processes.
func (t *team) agree(mine []float64, err error) ([]float64, error) {
	if t.size == 1 {
		return mine, err
	}
	text := ""
	if err != nil {
		text = err.Error()
		if cause := context.Cause(t.ctx); cause != nil && errors.Is(err, t.ctx.Err()) {
			text = cause.Error() // why ctx is done
		}
		text = text[:min(len(text), longestText)]
	}
	message := binary.LittleEndian.AppendUint64(nil, uint64(t.severity(err)))
	message = binary.LittleEndian.AppendUint64(message, uint64(len(text)))
	for _, x := range mine {
		message = binary.LittleEndian.AppendUint64(message, math.Float64bits(x))
	}
	gathered := make([]byte, t.size*len(message))
	if err := t.gather(message, gathered); err != nil {
		return nil, err
	}
	word := func(rank, i int) uint64 { return binary.LittleEndian.Uint64(gathered[rank*len(message)+8*i:]) }
	first := 0 // first process with the most severe error
	for rank := range t.size {
		if word(rank, 0) > word(first, 0) {
			first = rank
		}
	}
	switch severity, length := word(first, 0), word(first, 1); {
	case severity > uint64(len(interruptions))+1 || length > longestText:
		return nil, t.broken(fmt.Errorf("process %d sends an invalid message", first))
	case severity > 0:
		return nil, t.adopt(first, int(severity), int(length), text, err)
	}
	numbers := make([]float64, 0, t.size*len(mine))
	for rank := range t.size {
		for i := range mine {
			numbers = append(numbers, math.Float64frombits(word(rank, 2+i)))
		}
	}
	return numbers, nil
}

// longestText is the maximum length in bytes of an error's text that is sent to other processes.
const longestText = 1 << 16

// adopt returns the error of the process with this rank. The error's text has length bytes. Only that process passes
// text; own is this process's own error.
func (t *team) adopt(rank, severity, length int, text string, own error) error {
	texts := make([]byte, t.size*length)
	mine := make([]byte, length)
	if rank == t.rank {
		copy(mine, text)
	}
	if err := t.gather(mine, texts); err != nil {
		return err
	}
	t.resumable = severity <= len(interruptions)
	if t.severity(own) == severity {
		return own
	}
	e := &otherError{rank: rank, text: string(texts[rank*length:][:length])}
	if t.resumable {
		e.cause = interruptions[severity-1]
	}
	return e
}

// errLimit is the error that every pause matches in errors.Is.
var errLimit = errors.New("a limit")

// A pause is an error that ends training so that it can be resumed. Its text is the reason.
type pause string

func (p pause) Error() string        { return string(p) }
func (p pause) Is(target error) bool { return target == errLimit }

// interruptions are the errors that end training so that it can be resumed.
var interruptions = []error{errLimit, context.DeadlineExceeded, context.Canceled}

// severity returns 0 for no error, i + 1 for interruptions[i], and a higher number for all other errors.
func (t *team) severity(err error) int {
	if err == nil {
		return 0
	}
	for i, cause := range interruptions {
		if errors.Is(err, cause) && (cause == errLimit || t.ctx.Err() == cause) {
			return 1 + i
		}
	}
	return 1 + len(interruptions)
}

// interrupted reports whether training can be resumed after err, on which all processes agree. Without a Group, not all
// errors come from agree.
func (t *team) interrupted(err error) bool {
	if t.size == 1 {
		severity := t.severity(err)
		return severity > 0 && severity <= len(interruptions)
	}
	return err != nil && t.resumable
}

// otherError is the error of another process.
type otherError struct {
	rank  int
	text  string
	cause error // the interruption, or nil for other errors
}

func (e *otherError) Error() string {
	text, whole := strings.CutPrefix(e.text, "train: ")
	text = fmt.Sprintf("process %d of the Group: %s", e.rank, text)
	if whole {
		return "train: " + text
	}
	return text
}

func (e *otherError) Unwrap() error { return e.cause }

// gather calls Group.Gather, unless an exchange has failed before.
func (t *team) gather(mine, gathered []byte) error {
	if t.failed != nil || len(mine) == 0 {
		return t.failed
	}
	err := t.Gather(mine, gathered)
	if err == nil && !bytes.Equal(gathered[t.rank*len(mine):][:len(mine)], mine) {
		err = fmt.Errorf("a Gather returned to process %d other bytes than it sent", t.rank)
	}
	return t.broken(err)
}

// swap exchanges tensors with every other process. The argument tensors returns the tensors that one process sends to
// another: in the process from, the tensors to send, and in the process to, the tensors to fill.
func (t *team) swap(tensors func(from, to int) []*tensor.Dense) error {
	for round := range t.size { // in each round, every process has one peer or none
		peer := (round - t.rank + t.size) % t.size
		if peer == t.rank || t.failed != nil {
			continue
		}
		out, received := raw(tensors(t.rank, peer)), raw(tensors(peer, t.rank))
		if len(out) > 0 || len(received) > 0 {
			t.broken(t.Swap(peer, out, received))
		}
	}
	return t.failed
}

// broken stores the error of an exchange, if err isn't nil. It returns the stored error.
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

// readFile returns the content of a safetensors file in all processes. Only the first process reads the file.
func (t *team) readFile(path string) (tensors []safetensors.Tensor, metadata map[string]string, err error) {
	var file bytes.Buffer
	if t.rank == 0 {
		tensors, metadata, err = safetensors.ReadFile(path)
		if err == nil && t.size > 1 {
			err = safetensors.Write(&file, tensors, metadata)
		}
	}
	data, err := t.broadcast(file.Bytes(), err)
	if err != nil || t.size == 1 {
		return tensors, metadata, err
	}
	if t.rank > 0 {
		tensors, metadata, err = safetensors.Read(bytes.NewReader(data), int64(len(data)))
	}
	_, err = t.agree(nil, err)
	return tensors, metadata, err
}

// Broadcast returns the data of the first process in all processes of a Group; it ignores the data of the others. If
// one process has an error, Broadcast returns the error in all. Without a Group, it returns its arguments data and err.
//
// Use Broadcast before Fit, for example to read a file that only the first process can access.
func Broadcast(g Group, data []byte, err error) ([]byte, error) {
	t, wrong := newTeam(context.Background(), g)
	if wrong != nil {
		return nil, wrong
	}
	return t.broadcast(data, err)
}

func (t *team) broadcast(data []byte, err error) ([]byte, error) {
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
		return nil, fmt.Errorf("train: the data of process 0: %w", err)
	}
	if t.rank > 0 {
		data = make([]byte, int(length))
	}
	whole := []*tensor.Dense{tensor.New(tensor.WithShape(len(data)), tensor.WithBacking(data))}
	return data, t.swap(func(from, _ int) []*tensor.Dense { return whole[:max(1-from, 0)] }) // only process 0 sends
}
