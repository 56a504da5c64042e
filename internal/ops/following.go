package ops

import G "gorgonia.org/gorgonia"

// Following calls add, which uses node x again after an earlier use, the node of a Linear, LayerNorm or RMSNorm of x.
// The use in add is a Linear of x, or an Add whose first term is x. Its gradient of x is then added by the op that
// computes the gradient of the earlier use, and not by Gorgonia, which needs a slow pass for it. If earlier is nil or
// another node, Following only calls add.
//
// Every loss that depends on add's result must also depend on the earlier node through ops with derivatives. Otherwise
// the gradient would be lost.
func Following(e *Env, x, earlier *G.Node, add func() (*G.Node, error)) (*G.Node, error) {
	if earlier == nil || !e.Training {
		return add()
	}
	if o := e.op(earlier); o != nil && o.adds && o.inputs[0] == x {
		e.earlier = earlier
		defer func() { e.earlier = nil }()
	}
	return add()
}

// follow returns the earlier node if Following has called for a use of x, and nil otherwise. It makes o hand its
// gradient of x to the op of this node. The node must become o's last input, so that o's gradient is computed first.
func (e *Env) follow(o *op, x *G.Node) *G.Node {
	earlier := e.earlier
	if earlier == nil || earlier.Op().(*op).inputs[0] != x {
		return nil
	}
	e.earlier = nil
	o.first, o.after = earlier.Op().(*op), o.after+1
	return earlier
}
