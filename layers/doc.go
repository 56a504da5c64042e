// Package layers gives Gorgonia programs attention and transformer layers.
//
// # Parameters live outside graphs
//
// A [Params] makes, names and initialises what a model learns. Layers are made from it, and each has a Forward that
// adds its nodes to the graph that its input belongs to:
//
//	params, err := layers.NewParams(tensor.Float32, seed)
//	attention, err := layers.NewMultiHeadAttention(params.Scope("attention"), 64, layers.AttentionConfig{Heads: 4})
//	…
//	b := &layers.Build{Mode: layers.Training}
//	y, err := attention.Forward(b, x, x, x, layers.Mask{Causal: true})
//	…
//	grads, err := gorgonia.Grad(cost, b.Learnables()...)
//
// The example of [MultiHeadAttention] is a whole program.
//
// Forward binds parameters into the graph as input nodes over the parameters' own memory. Any number of graphs, of any
// batch sizes, share one model: train in one, predict in another, and nothing is copied.
//
// # A Build for each graph
//
// What Forward needs to know travels in a [Build]: whether the graph is for training, the seed of its dropout, whether
// to keep attention weights. Afterwards the Build lists the graph's learnable nodes. The graph of an evaluation holds
// no dropout node at all.
//
// # Configuration
//
// Configurations are nested as models are: a [ModelConfig] holds a [PositionsConfig] and a [BlockConfig], which holds
// an [AttentionConfig], a [FeedForwardConfig] and a [NormConfig]. Widths are arguments of the constructors, which hand
// them down. An [Init] holds for all that is made below it, unless something there has one of its own. Configurations
// are plain data, which goes to JSON and back; a scheme of positions of one's own works in Go alone. What can't be
// combined is an error of the constructor. So is a number that isn't finite or is above 1e15 in size.
//
// # Shapes and names
//
// B is the batch, T the length of queries, S that of keys, D the width of the model, H the number of heads, G that of
// keys and values, K the width of a head (D/H unless said otherwise), V the vocabulary. Layers over sequences take
// (B, T, D), or (T, D) for a single one. Token ids, targets and lengths are nodes of dtype [gorgonia.org/tensor.Int].
// Weights have shape (out, in), as in PyTorch, and are named by their place: blocks.0.attention.query.weight.
//
// # What there is
//
// One family a file, from the parts to the whole:
//
//	linear.go, embedding.go       Linear; Embedding
//	positions.go                  Positions, the hooks of a scheme that tells positions apart; None
//	learned.go, sinusoidal.go     schemes that add to embeddings
//	rotary.go, rotary_scaling.go  one that turns queries and keys
//	alibi.go, relative.go         schemes that add to scores
//	norm.go, dropout.go           LayerNorm, RMSNorm; Dropout
//	activation.go                 ReLU, GELU, SiLU
//	feedforward.go                FeedForward, gated or not
//	attention.go, mask.go         ScaledDotProduct, its options and its Mask
//	multihead.go                  MultiHeadAttention: attention with learned projections
//	additive.go                   AdditiveAttention: keys scored by a small network
//	block.go                      EncoderBlock, DecoderBlock
//	model.go                      ModelConfig, and what an encoder and a decoder have in common
//	encoder.go, decoder.go        Encoder; Decoder
//	encoder_decoder.go            EncoderDecoder
//	classifier.go                 SequenceClassifier
//	cache.go                      Cache: keys and values of the tokens so far, for decoding (see package decode)
//	multihead_cached.go           attention that continues what a Cache holds
//	loss.go                       CrossEntropy, BinaryCrossEntropy; squared, absolute and Huber error
//	param.go, init.go, build.go   Params, initial values, Build
//	function.go                   Function: a graph to evaluate, with its machine
//	graph.go                      CheckGraph, for machines of one's own
//	kinds.go                      what goes to JSON as one of several kinds
//	weights.go, pytorch.go        saving and loading, as safetensors and as PyTorch's state dicts
//
// # Attention
//
// [ScaledDotProduct] is one op, tiled, with nothing of size T×S: the fused form. [ScaledDotProductStages] composes the
// same of separate ops, every stage a node to look at: scores, weights, output. Each option means the same in both, and
// options combine: a scale, softcap, heads of keys and values that several heads of queries share, past keys and
// values, dropout of the weights, and the [Mask].
//
// In a Mask, true means attend, everywhere. It can be causal, a window, key lengths, booleans, numbers to add, or
// slopes by distance, all at once. What it hides reaches neither an output nor a gradient, NaN included, and a query
// that sees nothing gets zeros.
//
// # Machines
//
// A [Function] is a graph to evaluate with its machine: values in, copies out, from any number of goroutines. It
// suffices to predict with.
//
// Otherwise use gorgonia.NewTapeMachine, one live machine for each graph: the operations keep their memory between
// runs. Graphs may share their parameters and run side by side as long as none trains. An intermediate node's Value may
// be overwritten: make a gorgonia.Read of what you want before the machine, and copy what you keep.
//
// Models may be built, differentiated and run side by side, each in a graph of its own. Of Gorgonia's own operations
// gorgonia.Rectify is the exception: it counts its calls in a variable that all graphs share, so use [ReLU] instead.
package layers
