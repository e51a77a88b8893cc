//go:build !race

package proc

const raceDetector = false
