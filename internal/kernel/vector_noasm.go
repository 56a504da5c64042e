//go:build !amd64 || noasm

package kernel

func vectorAsm32() []*vectorBody[float32] { return nil }

func vectorAsm64() []*vectorBody[float64] { return nil }
