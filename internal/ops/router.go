package ops

import (
	"cmp"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/heed-go/heed/internal/kernel"
)

// A Router chooses experts for each token, and their shares of the token's output.
type Router = kernel.Router

// CheckRouter checks a router's settings. Its errors begin with name.
func CheckRouter(name string, r Router) error {
	switch {
	case r.Top < 1 || r.Top > r.Experts:
		return fmt.Errorf("%s: Top must be from 1 to the number of experts, %d, got %d", name, r.Experts, r.Top)
	case r.Groups < 0 || r.Groups > 0 && r.Experts%r.Groups != 0:
		return fmt.Errorf("%s: Groups must divide the number of experts, %d, or be 0 for no groups, got %d", name, r.Experts, r.Groups)
	case r.Groups == 0 && r.TopGroups != 0 || r.Groups > 0 && (r.TopGroups < 1 || r.TopGroups > r.Groups):
		return fmt.Errorf("%s: TopGroups must be from 1 to Groups, or 0 without groups, got %d of %d groups", name, r.TopGroups, r.Groups)
	case r.Groups > 0 && r.TopGroups*(r.Experts/r.Groups) < r.Top:
		return fmt.Errorf("%s: %d groups of %d experts don't have the %d experts of a token: increase TopGroups", name, r.TopGroups, r.Experts/r.Groups, r.Top)
	}
	return nil
}

// tokensOf checks a router and its logits of shape (…, Experts), and returns the number of tokens.
func tokensOf(r Router, logits *G.Node) (tokens int, err error) {
	const name = "router"
	s := logits.Shape()
	if len(s) < 1 || s[len(s)-1] != r.Experts {
		return 0, fmt.Errorf("%s: the logits must have shape (…, %d), got %v", name, r.Experts, s)
	}
	tokens, _ = rows(s)
	return tokens, cmp.Or(CheckRouter(name, r), CheckFloat(name, "the logits", logits))
}

// Choose returns the numbers of the chosen experts, an int matrix of shape (N, Top) for logits (…, Experts) of N
// tokens. The bias, of shape (Experts), is added to scores for this choice only; nil for none. The choice has no
// gradient.
func Choose(e *Env, logits, bias *G.Node, r Router) (*G.Node, error) {
	tokens, err := tokensOf(r, logits)
	if err != nil {
		return nil, err
	}
	if bias != nil {
		if err := cmp.Or(sameDtype("router", "the bias", bias, "the logits", logits), hasShape("router", "the bias", bias, r.Experts)); err != nil {
			return nil, err
		}
	}
	return ByDtype(logits, choose[float32], choose[float64])(e, logits, bias, r, tokens)
}

func choose[F kernel.Float](e *Env, logits, bias *G.Node, r Router, tokens int) (*G.Node, error) {
	shape := tensor.Shape{tokens, r.Top}
	return e.apply(newInts(fmt.Sprintf("choose%v%v", shape, r), shape, func(ids []int, values []G.Value) {
		logits := elements[F](values[0], tokens*r.Experts)
		kernel.Choose(e.Cores, r, ids, logits, optional[F](values, 1, r.Experts))
	}), logits, bias)
}

// Share returns the shares of the chosen experts, of shape (N, Top), for the result ids of Choose.
func Share(e *Env, logits, ids *G.Node, r Router) (*G.Node, error) {
	tokens, err := tokensOf(r, logits)
	if err != nil {
		return nil, err
	}
	return ByDtype(logits, share[float32], share[float64])(e, logits, ids, r, tokens)
}

func share[F kernel.Float](e *Env, logits, ids *G.Node, r Router, tokens int) (*G.Node, error) {
	shape, n := tensor.Shape{tokens, r.Top}, tokens*r.Experts
	attrs := fmt.Sprintf("%v%v", logits.Shape(), r)
	o := newOp("share"+attrs, shape, func(shares []F, values []G.Value) {
		kernel.Share(e.Cores, r, shares, elements[F](values[0], n), chosen(values[1], r, tokens))
	})
	o.wrt, o.grad = 1, func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return one(e.apply(newOp("share.dlogits"+attrs, logits.Shape(), func(d []F, values []G.Value) {
			kernel.ShareGrad(e.Cores, r, d, elements[F](values[0], n), chosen(values[1], r, tokens), elements[F](values[2], tokens*r.Top))
		}), inputs[0], inputs[1], g))
	}
	return e.apply(o, logits, ids)
}

// chosen returns the numbers of experts that an input holds.
func chosen(v G.Value, r Router, tokens int) []int {
	ids := elements[int](v, tokens*r.Top)
	for _, id := range ids {
		if id < 0 || id >= r.Experts {
			fail("there is no expert %d among %d", id, r.Experts)
		}
	}
	return ids
}

// Balance returns Experts·Σ f·P over the experts, a scalar. f is the share of all choices that chose an expert, and P
// the mean of its scores, which add up to 1 for each token. It is 1 if the experts are chosen equally often, and at
// most Experts (Fedus et al., Switch Transformers, 2021). Only P has a gradient.
func Balance(e *Env, logits, ids *G.Node, r Router) (*G.Node, error) {
	tokens, err := tokensOf(r, logits)
	if err != nil {
		return nil, err
	}
	return ByDtype(logits, balance[float32], balance[float64])(e, logits, ids, r, tokens)
}

func balance[F kernel.Float](e *Env, logits, ids *G.Node, r Router, tokens int) (*G.Node, error) {
	n, attrs := tokens*r.Experts, fmt.Sprintf("%v%v", logits.Shape(), r)
	o := newScalar("balance"+attrs, func(values []G.Value) F {
		return F(kernel.Balance(r, make([]int, r.Experts), elements[F](values[0], n), chosen(values[1], r, tokens)))
	})
	o.wrt, o.grad = 1, func(inputs G.Nodes, _, g *G.Node) (G.Nodes, error) {
		return one(e.apply(newOp("balance.dlogits"+attrs, logits.Shape(), func(d []F, values []G.Value) {
			counts := make([]int, r.Experts)
			for _, id := range chosen(values[1], r, tokens) {
				counts[id]++
			}
			kernel.BalanceGrad(e.Cores, r, d, elements[F](values[0], n), counts, float64(elements[F](values[2], 1)[0]))
		}), inputs[0], inputs[1], g))
	}
	return e.apply(o, logits, ids)
}
