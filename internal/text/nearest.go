package text

import (
	"slices"
	"strings"
)

// DidYouMean returns "; did you mean X?" to end an error about an unknown name, where X is the Nearest name. If no name
// is near, it returns "".
func DidYouMean(unknown string, names []string) string {
	if name := Nearest(unknown, names); name != "" {
		return "; did you mean " + Shorten(name, 80, 20) + "?"
	}
	return ""
}

// Nearest returns the name that a user who wrote an unknown name probably meant, or "" if none is near. It compares
// names without case, spaces and the characters - _ and . in this order:
//
//   - the same name, or our name for what other libraries call so (see elsewhere);
//   - the only name that begins with the unknown name, which has at least three characters;
//   - the name with the fewest edits: up to 1 for 2 characters, and up to 2 for 5 or more;
//   - the longest name of at least three characters with which the unknown name begins.
func Nearest(unknown string, names []string) string {
	unknown = plain(unknown)
	u := []rune(unknown)
	nearest, fewest := "", min(2, (len(u)+1)/3)
	var longer []string // names that begin with the unknown name
	shorter := ""       // name with which the unknown name begins
	for _, name := range names {
		p := plain(name)
		if p == unknown || slices.Contains(strings.Fields(elsewhere[p]), unknown) {
			return name
		}
		if len(u) >= 3 && strings.HasPrefix(p, unknown) && !slices.Contains(longer, name) {
			longer = append(longer, name)
		}
		if r := []rune(p); len(u) <= 100 && max(len(r)-len(u), len(u)-len(r)) <= fewest { // the time is quadratic
			if edits, _ := EditDistance(u, r, nil); edits < fewest || edits == fewest && nearest == "" {
				nearest, fewest = name, edits
			}
		}
		if len(p) > max(2, len(plain(shorter))) && strings.HasPrefix(unknown, p) {
			shorter = name
		}
	}
	switch {
	case len(longer) == 1:
		return longer[0]
	case nearest != "":
		return nearest
	}
	return shorter
}

// plain returns a name without case, spaces and punctuation.
func plain(name string) string { return strings.ToLower(punctuation.Replace(name)) }

var punctuation = strings.NewReplacer("-", "", "_", "", ".", "", " ", "")

// elsewhere has the names that PyTorch, Keras, Hugging Face, scikit-learn, fastText and nanoGPT use, and common short
// forms, by our name. All names are plain.
var elsewhere = map[string]string{
	// flags and keys
	"activation":      "act hiddenact nonlinearity",
	"addr":            "host port bind listen",
	"answers":         "out output predictions",
	"average":         "ema emadecay swa",
	"batchsize":       "bs minibatch minibatchsize perdevicetrainbatchsize",
	"beam":            "numbeams",
	"checkevery":      "evalinterval evalsteps evalevery",
	"checkpointevery": "saveinterval savesteps saveevery",
	"clipnorm":        "clip gradclip maxgradnorm gradientclipval",
	"data":            "i input inputs train trainfile file dataset",
	"decay":           "lrdecayiters",
	"decoderlayers":   "numdecoderlayers",
	"dim":             "dmodel nembd embdim embeddim embeddingdim hiddensize width",
	"dropout":         "residpdrop",
	"from":            "init initfrom pretrained checkpoint weights",
	"heads":           "nhead nheads numheads numattentionheads",
	"floor":           "minlr",
	"hidden":          "dff dimfeedforward ffndim intermediatesize",
	"layers":          "nlayer nlayers numlayers numhiddenlayers depth blocks",
	"learningrate":    "lr maxlr baselr eta stepsize",
	"maxepochs":       "epoch epochs nepochs numepochs numtrainepochs",
	"maxlen":          "blocksize context contextlength seqlen maxseqlen sequencelength nctx",
	"maxsteps":        "steps iters iterations maxiter maxiters niter numsteps",
	"microbatches":    "gradientaccumulationsteps accumulategradbatches",
	"monitor":         "metric metricforbestmodel",
	"out":             "o savedir modeldir logdir",
	"patience":        "earlystopping earlystoppingpatience",
	"positions":       "pe positionalencoding positionembeddings",
	"prompt":          "start",
	"schedule":        "lrschedule lrscheduler lrschedulertype",
	"seed":            "randomseed randomstate manualseed",
	"solver":          "opt optim optimizer optimiser",
	"temperature":     "temp",
	"tokens":          "n maxtokens maxnewtokens numtokens length maxlength words word",
	"top":             "k nbest",
	"topk":            "k",
	"topp":            "p nucleus",
	"validation":      "testsize",
	"validationdata":  "val valid valdata evaldata testdata dev",
	"vocabsize":       "nvocab maxfeatures",
	"warmup":          "numwarmupsteps",
	"weightdecay":     "wd l2",
	"workers":         "j njobs numworkers threads",

	// commands
	"eval":     "test score",
	"generate": "sample",
	"predict":  "infer inference",
	"train":    "fit finetune",

	// tasks and other choices
	"bpe":               "subword subwords",
	"characters":        "chars",
	"classification":    "classify sentiment",
	"inversesquareroot": "noam rsqrt",
	"powershell":        "pwsh",
	"restarts":          "sgdr cosinewithrestarts",
	"rotary":            "rope",
	"seq2seq":           "translation translate sequencetosequence",
	"silu":              "swish",
	"sinusoidal":        "sin",
	"staircase":         "step steplr",
	"tagging":           "ner tokenclassification",
	"text":              "lm languagemodel languagemodeling gpt",
	"valaccuracy":       "acc accuracy",
	"valloss":           "loss",
	"windows1252":       "ansi",
}
