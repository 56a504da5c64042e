// Package layers gives Gorgonia programs attention and transformer layers.
//
// # Parameters live outside graphs
//
// A [Params] makes, names and initialises the parameters of a model. The constructor of a layer gets a Params and makes
// the layer's parameters in it. The layer's method Forward adds nodes to the graph of its input:
//
//	params, err := layers.NewParams(tensor.Float32, seed)
//	attention, err := layers.NewMultiHeadAttention(params.Scope("attention"), 64, layers.AttentionConfig{Heads: 4})
//	…
//	b := &layers.Build{Training: true}
//	y, err := attention.Forward(b, x, x, x, layers.Mask{Causal: true})
//	…
//	grads, err := gorgonia.Grad(cost, b.Learnables()...)
//
// The example of [MultiHeadAttention] is a complete program.
//
// Forward binds parameters into the graph as input nodes that use the parameters' own memory. Several graphs, even with
// different batch sizes, can therefore share one model: train in one graph and predict in another without copying.
//
// # A Build for each graph
//
// A [Build] holds the settings of one graph: whether it is for training, the seed of dropout, and whether to keep
// attention weights. After Forward, the Build lists the graph's learnable nodes. A graph for evaluation has no dropout
// nodes. With an [Adapter] in the Build, low-rank products are learned, and the model's own parameters keep their
// values.
//
// # Configuration
//
// Configurations nest like models: a [ModelConfig] holds a [PositionsConfig] and a [BlockConfig], which holds an
// [AttentionConfig], a [FeedForwardConfig] and a [NormConfig]. The width of a layer's input is an argument of its
// constructor. The [Init] of a configuration also applies to the weights of nested configurations, unless they have an
// Init of their own. Configurations can be written to JSON and read back, unless they contain an Init with a Func or a
// position scheme of your own. Constructors return an error if options can't be combined, or if a number is NaN,
// infinite or above 1e15 in absolute value.
//
// # Shapes and names
//
// B is the batch size, T the number of queries, S the number of keys, D the width of the model, H the number of query
// heads, G the number of key and value heads, K the width of a head (D/H by default) and V the width of a head's values
// or the size of the vocabulary. Sequences have shape (B, T, D), or (T, D) for a single sequence. Token ids, targets
// and lengths are nodes of dtype [gorgonia.org/tensor.Int]. Weights have shape (out, in), as in PyTorch. The name of a
// weight gives its place in the model, such as blocks.0.attention.query.weight.
//
// # Contents
//
// The files, from parts to whole models:
//
//	linear.go, embedding.go       Linear; Embedding
//	positions.go                  Positions, the interface of position schemes; NoPositions
//	positionslist.go              PositionsList, several schemes at once
//	learned.go, sinusoidal.go     schemes that add vectors to embeddings
//	rotary.go, rotary_scaling.go  a scheme that rotates queries and keys
//	alibi.go, relative.go         schemes that add biases to scores
//	disentangled.go, distances.go a scheme that adds products with distances to scores; Distances, its vectors
//	norm.go, dropout.go           Norm: LayerNorm or RMSNorm; Dropout
//	activation.go                 ReLU, GELU, SiLU, tanh, sigmoid
//	feedforward.go, experts.go    FeedForward, gated or not; Experts, a mixture of such layers
//	routing.go                    Routing: which experts the tokens of a graph have
//	attention.go, mask.go         ScaledDotProduct, its options and its Mask
//	blockmask.go                  BlockMask: a mask from a function
//	multihead.go                  MultiHeadAttention: attention with learned projections
//	additive.go                   AdditiveAttention: keys scored by a small network
//	block.go                      Block, for encoders and decoders
//	model.go                      ModelConfig; Trunk, the parts of an encoder or a decoder
//	projection.go                 embeddings narrower than the blocks; blocks that share weights
//	head.go                       Transform, and a model's head
//	encoder.go, decoder.go        Encoder; Decoder
//	encoder_decoder.go            EncoderDecoder
//	classifier.go, pool.go        SequenceClassifier; Pool and Normalize, for one vector per sequence
//	cache.go                      Cache: keys and values of earlier tokens, for decoding (see package decode)
//	multihead_cached.go           attention to the keys and values in a Cache
//	loss.go                       CrossEntropy, HeadCrossEntropy, BinaryCrossEntropy; errors of numbers
//	contrastive.go                Contrastive: InfoNCE, for vectors of texts
//	param.go, init.go, build.go   Params, initial values, Build
//	function.go                   Function: a graph to evaluate, with its machine
//	graph.go                      CheckGraph, for graphs that you run yourself
//	weights.go, load.go           saving and loading safetensors files
//	pytorch.go                    safetensors files with PyTorch's names and layouts
//
// # Attention
//
// [ScaledDotProduct] is one fused, tiled op that stores nothing of size T×S. [ScaledDotProductStages] builds the same
// function from separate ops and returns every stage as a node: scores, weights, output. Both functions have the same
// options, and all options can be combined: a scale, a softcap, key and value heads that several query heads share,
// past keys and values, dropout of the weights, and a [Mask].
//
// A Mask can combine a causal limit, a window, key lengths, a boolean mask, a bias, slopes by distance, and products
// with distances. In the boolean mask, true means attend. Masked keys affect neither an output nor a gradient, even if
// they hold NaN. If all keys of a query are masked, the query's output is zero.
//
// # Machines
//
// A [Function] is a graph for evaluation together with its machine. You call it with values for the inputs, and it
// returns the values of the outputs. Several goroutines may call it at the same time. For prediction you need nothing
// else.
//
// Otherwise use gorgonia.NewTapeMachine. Keep only one live machine per graph, because operations reuse their memory
// between runs. Graphs that share parameters may run at the same time as long as none of them trains. A run may
// overwrite the Value of an intermediate node. To get this value, call gorgonia.Read for the node before you make the
// machine. The next run overwrites the value read, so copy it if you need it for longer.
//
// Goroutines may build, differentiate and run models at the same time, each in its own graph. One of Gorgonia's own
// operations is an exception: gorgonia.Rectify counts its calls in a variable that all graphs share. Use [ReLU]
// instead.
package layers
