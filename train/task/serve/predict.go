package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/heed-go/heed/internal/apart"
	"github.com/heed-go/heed/train/task"
)

// A predictRequest asks for answers to inputs.
type predictRequest struct {
	Inputs []*string `json:"inputs"`
	Beam   int       `json:"beam"`
	Scores bool      `json:"scores"`
}

// A predictAnswer is the answer to an input, or the reason why there is none.
type predictAnswer struct {
	Answer  *string  `json:"answer,omitempty"`
	LogProb *float64 `json:"log_prob,omitempty"`
	Unknown bool     `json:"unknown,omitempty"`
	Error   string   `json:"error,omitempty"`
}

// predict answers inputs.
func (h *Handler) predict(w http.ResponseWriter, r *http.Request) error {
	inputs, request, err := h.readPredict(w, r)
	if err != nil {
		return err
	}
	answers, err := h.ask(&job{ctx: r.Context(), inputs: inputs, beam: request.Beam})
	if err != nil {
		return err
	}
	body := struct {
		Answers []predictAnswer `json:"answers"`
	}{make([]predictAnswer, len(answers))}
	for i, a := range answers {
		body.Answers[i] = answerOf(a, request.Scores)
	}
	return h.write(w, http.StatusOK, body)
}

func answerOf(a task.Answer, scores bool) predictAnswer {
	var wrong *task.InputError
	switch {
	case errors.As(a.Err, &wrong): // wrong.Err doesn't repeat the input
		return predictAnswer{Error: oneLine(wrong.Err), Unknown: a.Unknown}
	case a.Err != nil:
		return predictAnswer{Error: oneLine(a.Err), Unknown: a.Unknown}
	}
	answer := predictAnswer{Answer: &a.Text, Unknown: a.Unknown}
	if scores && !math.IsNaN(a.LogProb) && !math.IsInf(a.LogProb, 0) { // JSON has no such numbers
		answer.LogProb = &a.LogProb
	}
	return answer
}

// readPredict reads and checks a request.
func (h *Handler) readPredict(w http.ResponseWriter, r *http.Request) (inputs []string, request predictRequest, err error) {
	wants := map[string]string{
		"inputs": fmt.Sprintf("a list of 1 to %d texts", h.options.MaxInputs),
		"scores": "true or false",
	}
	if h.model.Config.Kind().Beams {
		wants["beam"] = fmt.Sprintf("a whole number from 1 to %d", h.options.MaxBeam)
	}
	request.Beam = 1
	if err := h.read(w, r, &request, wants); err != nil {
		return nil, request, err
	}
	if n := len(request.Inputs); n == 0 || n > h.options.MaxInputs {
		return nil, request, failf(http.StatusBadRequest, "inputs must be %s, got %d", wants["inputs"], n)
	}
	if request.Beam < 1 || request.Beam > h.options.MaxBeam {
		return nil, request, failf(http.StatusBadRequest, "beam must be %s, got %d", wants["beam"], request.Beam)
	}
	for _, input := range request.Inputs {
		if input == nil {
			return nil, request, failf(http.StatusBadRequest, "inputs must be %s, got null among them", wants["inputs"])
		}
		inputs = append(inputs, *input)
	}
	return inputs, request, nil
}

// A job is the inputs of a request, which wait for their answers.
type job struct {
	ctx    context.Context // of the request
	inputs []string
	beam   int
	alone  func() error  // if not nil, the job is this function instead, and never joins other jobs
	done   chan struct{} // closed when answers or err is set

	answers []task.Answer
	err     error
}

// joins reports whether the model can answer two jobs together.
func (j *job) joins(other *job) bool {
	return j.alone == nil && other.alone == nil && j.beam == other.beam
}

// ask queues a job and waits until it is answered or its context ends.
func (h *Handler) ask(j *job) ([]task.Answer, error) {
	j.done = make(chan struct{})
	h.mu.Lock()
	if h.inputs+len(j.inputs) > h.options.Queue {
		defer h.mu.Unlock()
		return nil, failf(http.StatusServiceUnavailable, "too many inputs are already waiting (%d): try again later", h.inputs)
	}
	h.inputs += len(j.inputs)
	h.waiting = append(h.waiting, j)
	if !h.working {
		h.working = true
		go h.work()
	}
	h.mu.Unlock()
	select {
	case <-j.done:
		return j.answers, j.err
	case <-j.ctx.Done():
		h.drop(j)
		return nil, j.ctx.Err()
	}
}

// drop removes a job from the queue, if it still waits.
func (h *Handler) drop(j *job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.waiting, j); i >= 0 {
		h.waiting = slices.Delete(h.waiting, i, i+1)
		h.inputs -= len(j.inputs)
	}
}

// work answers waiting jobs until there are none.
func (h *Handler) work() {
	for jobs := h.take(); len(jobs) > 0; jobs = h.take() {
		h.answer(jobs)
	}
}

// take removes the next jobs to answer together from the queue: the first waiting job, and others with the same beam,
// up to Batch inputs.
func (h *Handler) take() (taken []*job) {
	h.mu.Lock()
	defer h.mu.Unlock()
	inputs := 0
	var left []*job
	for _, j := range h.waiting {
		if len(taken) == 0 || j.joins(taken[0]) && inputs+len(j.inputs) <= h.options.Batch {
			taken = append(taken, j)
			inputs += len(j.inputs)
		} else {
			left = append(left, j)
		}
	}
	h.waiting = left
	h.inputs -= inputs
	h.working = len(taken) > 0
	return taken
}

// answer answers jobs together. If that fails, it answers each job separately, so that no job fails because of another.
// It stops when the contexts of all jobs have ended.
func (h *Handler) answer(jobs []*job) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var inputs []string
	var waited atomic.Int64
	waited.Store(int64(len(jobs)))
	for _, j := range jobs {
		inputs = append(inputs, j.inputs...)
		defer context.AfterFunc(j.ctx, func() {
			if waited.Add(-1) == 0 {
				cancel()
			}
		})()
	}
	var answers []task.Answer
	err := h.recovered(func() (err error) {
		if jobs[0].alone != nil {
			return jobs[0].alone()
		}
		answers, err = h.model.PredictAll(ctx, inputs, task.PredictOptions{Beam: jobs[0].beam})
		return err
	})
	if err != nil && len(jobs) > 1 && ctx.Err() == nil {
		for _, j := range jobs {
			h.answer([]*job{j})
		}
		return
	}
	for _, j := range jobs {
		if j.err = err; err == nil && j.alone == nil {
			j.answers, answers = answers[:len(j.inputs)], answers[len(j.inputs):]
		}
		close(j.done)
	}
}

// recovered calls f. If f panics or ends its goroutine, recovered returns an error.
func (h *Handler) recovered(f func() error) error {
	err := apart.Call(f)
	if errors.Is(err, apart.ErrGoexit) || errors.As(err, new(*apart.Panic)) {
		h.options.ErrorLog.Printf("panic in the model: %v", err)
		err = errPanic
	}
	return err
}

var errPanic = errors.New("the model failed on this request: see the service's log")
