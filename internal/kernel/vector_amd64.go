//go:build !noasm

package kernel

//go:generate go run -C gen ./vector -out ../vector_amd64.s -stubs ../vector_stub_amd64.go -pkg kernel

func vectorAsm32() (bodies []*vectorBody[float32]) {
	if hasAVX512 {
		bodies = append(bodies, &vectorBody[float32]{
			name:          "avx512",
			add:           vectorAdd32AVX512,
			skipMul:       vectorSkipMul32AVX512,
			relu:          vectorRelu32AVX512,
			gelu:          vectorGelu32AVX512,
			geluTanh:      vectorGeluTanh32AVX512,
			reluGrad:      vectorReluGrad32AVX512,
			geluGrad:      vectorGeluGrad32AVX512,
			geluTanhGrad:  vectorGeluTanhGrad32AVX512,
			scale:         vectorScale32AVX512,
			axpy:          vectorAxpy32AVX512,
			adamW:         vectorAdamW32AVX512,
			dropout:       vectorDropout32AVX512,
			maxOf:         vectorMax32AVX512,
			dot:           vectorDot32AVX512,
			hasNaN:        vectorHasNaN32AVX512,
			sumSquares:    vectorSumSquares32AVX512,
			expShift:      vectorExpShift32AVX512,
			expSum:        vectorExpSum32AVX512,
			addRow:        vectorAddRow32AVX512,
			sumRows:       vectorSumRows32AVX512,
			copyRows:      vectorCopyRows32AVX512,
			softmax:       vectorSoftmax32AVX512,
			softmaxGrad:   vectorSoftmaxGrad32AVX512,
			layerNorm:     vectorLayerNorm32AVX512,
			layerNormGrad: vectorLayerNormGrad32AVX512,
		})
	}
	if hasAVX2 {
		bodies = append(bodies, &vectorBody[float32]{
			name:          "avx2",
			add:           vectorAdd32AVX2,
			skipMul:       vectorSkipMul32AVX2,
			relu:          vectorRelu32AVX2,
			gelu:          vectorGelu32AVX2,
			geluTanh:      vectorGeluTanh32AVX2,
			reluGrad:      vectorReluGrad32AVX2,
			geluGrad:      vectorGeluGrad32AVX2,
			geluTanhGrad:  vectorGeluTanhGrad32AVX2,
			scale:         vectorScale32AVX2,
			axpy:          vectorAxpy32AVX2,
			adamW:         vectorAdamW32AVX2,
			dropout:       vectorDropout32AVX2,
			maxOf:         vectorMax32AVX2,
			dot:           vectorDot32AVX2,
			hasNaN:        vectorHasNaN32AVX2,
			sumSquares:    vectorSumSquares32AVX2,
			expShift:      vectorExpShift32AVX2,
			expSum:        vectorExpSum32AVX2,
			addRow:        vectorAddRow32AVX2,
			sumRows:       vectorSumRows32AVX2,
			copyRows:      vectorCopyRows32AVX2,
			softmax:       vectorSoftmax32AVX2,
			softmaxGrad:   vectorSoftmaxGrad32AVX2,
			layerNorm:     vectorLayerNorm32AVX2,
			layerNormGrad: vectorLayerNormGrad32AVX2,
		})
	}
	return bodies
}

// vectorAsm64 leaves what training in float32 doesn't need to the portable body.
func vectorAsm64() (bodies []*vectorBody[float64]) {
	portable := vectorPortable[float64]()
	if hasAVX512 {
		bodies = append(bodies, &vectorBody[float64]{
			name:          "avx512",
			add:           vectorAdd64AVX512,
			skipMul:       vectorSkipMul64AVX512,
			relu:          vectorRelu64AVX512,
			gelu:          portable.gelu,
			geluTanh:      portable.geluTanh,
			reluGrad:      vectorReluGrad64AVX512,
			geluGrad:      portable.geluGrad,
			geluTanhGrad:  portable.geluTanhGrad,
			scale:         vectorScale64AVX512,
			axpy:          vectorAxpy64AVX512,
			adamW:         vectorAdamW64AVX512,
			dropout:       portable.dropout,
			maxOf:         vectorMax64AVX512,
			dot:           vectorDot64AVX512,
			hasNaN:        vectorHasNaN64AVX512,
			sumSquares:    vectorSumSquares64AVX512,
			expShift:      vectorExpShift64AVX512,
			expSum:        vectorExpSum64AVX512,
			addRow:        vectorAddRow64AVX512,
			sumRows:       vectorSumRows64AVX512,
			copyRows:      vectorCopyRows64AVX512,
			softmax:       vectorSoftmax64AVX512,
			softmaxGrad:   vectorSoftmaxGrad64AVX512,
			layerNorm:     vectorLayerNorm64AVX512,
			layerNormGrad: vectorLayerNormGrad64AVX512,
		})
	}
	if hasAVX2 {
		bodies = append(bodies, &vectorBody[float64]{
			name:          "avx2",
			add:           vectorAdd64AVX2,
			skipMul:       vectorSkipMul64AVX2,
			relu:          vectorRelu64AVX2,
			gelu:          portable.gelu,
			geluTanh:      portable.geluTanh,
			reluGrad:      vectorReluGrad64AVX2,
			geluGrad:      portable.geluGrad,
			geluTanhGrad:  portable.geluTanhGrad,
			scale:         vectorScale64AVX2,
			axpy:          vectorAxpy64AVX2,
			adamW:         vectorAdamW64AVX2,
			dropout:       portable.dropout,
			maxOf:         vectorMax64AVX2,
			dot:           vectorDot64AVX2,
			hasNaN:        vectorHasNaN64AVX2,
			sumSquares:    vectorSumSquares64AVX2,
			expShift:      vectorExpShift64AVX2,
			expSum:        vectorExpSum64AVX2,
			addRow:        vectorAddRow64AVX2,
			sumRows:       vectorSumRows64AVX2,
			copyRows:      vectorCopyRows64AVX2,
			softmax:       vectorSoftmax64AVX2,
			softmaxGrad:   vectorSoftmaxGrad64AVX2,
			layerNorm:     vectorLayerNorm64AVX2,
			layerNormGrad: vectorLayerNormGrad64AVX2,
		})
	}
	return bodies
}
