package spool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"beeyard"
	"beeyard/internal/durable"
	"beeyard/internal/strict"
)

// StageArtifact stores r as the output of a claim, in place of what was staged
// before. Nothing of it is visible outside the claim until that settles as
// done. On nil the data is durable. ErrClaimLost when the claim is over.
func (r *Run) StageArtifact(ctx context.Context, ref beeyard.Ref, from io.Reader) (_ *beeyard.Artifact, err error) {
	if err := errors.Join(r.writable("stage artifact"), beeyard.CheckStoredID(ref.TaskID)); err != nil {
		return nil, err
	}
	dir, err := r.openClaimDir(ref.Token)
	if missing(err) {
		return nil, claimLost(ref.TaskID)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if err := r.claimIn(dir, ref.TaskID); err != nil {
		return nil, err
	}
	temp := tempName("artifact")
	a, err := r.copyArtifact(ctx, dir, temp, from)
	if err == nil {
		err = r.claimIn(dir, ref.TaskID)
	}
	if err == nil {
		err = dir.Rename(temp, dir, tagged(ref.TaskID, tagArtifact, ""))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("stage artifact: %w", err), ignoreMissing(dir.Remove(temp)))
	}
	a.Name = ref.TaskID + ".md"
	return a, nil
}

// claimIn is ErrClaimLost unless D/x.json exists: the path is the token.
func (r *Run) claimIn(dir durable.Dir, id string) error {
	there, err := dir.Exists(bodyName(id))
	if err != nil {
		return fmt.Errorf("look for claim: %w", err)
	}
	if !there {
		return claimLost(id)
	}
	return nil
}

func (r *Run) copyArtifact(ctx context.Context, dir durable.Dir, name string, from io.Reader) (_ *beeyard.Artifact, err error) {
	f, err := dir.Create(name, fileMode)
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, sum), &ctxReader{ctx, from})
	if err != nil {
		return nil, fmt.Errorf("write: %w", err)
	}
	if err := f.Sync(); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	return &beeyard.Artifact{Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// ctxReader ends a copy between two reads.
type ctxReader struct {
	ctx  context.Context
	from io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.from.Read(p)
}

// stagedArtifact measures and flushes what a claim staged; nil when nothing. A
// handler that left something else than a file there has its task refused, not
// followed: ErrNotAllowed.
func (r *Run) stagedArtifact(dir durable.Dir, id string) (*beeyard.Artifact, error) {
	a, err := measure(dir, tagged(id, tagArtifact, ""), true)
	switch {
	case missing(err):
		return nil, nil
	case errors.Is(err, durable.ErrNotRegular):
		return nil, &beeyard.Error{Op: "read artifact", ID: id, Err: beeyard.Because(beeyard.ErrNotAllowed, "what the handler left at its artifact path is not a regular file"),
			Hint: "the handler must write a file there, not a link or a folder"}
	case err != nil:
		return nil, fmt.Errorf("read staged artifact: %w", err)
	}
	a.Name = id + ".md"
	return a, nil
}

// digest measures a file.
func digest(dir durable.Dir, name string) (*beeyard.Artifact, error) {
	return measure(dir, name, false)
}

func measure(dir durable.Dir, name string, flush bool) (_ *beeyard.Artifact, err error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err == nil && flush {
		// Linux flushes a file through any descriptor of it, one for reading too.
		err = f.Sync()
	}
	if err != nil {
		return nil, err
	}
	return &beeyard.Artifact{Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// maxResultBytes bounds what a handler may say of its work.
const maxResultBytes = 1 << 20

// handlerResult reads x~result; nil when it is absent or empty. Keys that it
// does not know are passed over: they may be a newer contract's. ErrUsage when
// it cannot be read.
func (r *Run) handlerResult(dir durable.Dir, id string) (*beeyard.Result, error) {
	bad := func(why string) error {
		return &beeyard.Error{Op: "read result", ID: id, Err: beeyard.Because(beeyard.ErrUsage, "what the handler left at its result path "+why),
			Hint: "the handler must write one JSON object with verdict, reason, retry_after, spend, tokens or cost"}
	}
	data, _, err := dir.ReadFile(tagged(id, tagResult, ""), maxResultBytes)
	switch {
	case missing(err):
		return nil, nil
	case errors.Is(err, durable.ErrNotRegular):
		return nil, bad("is not a regular file")
	case errors.Is(err, durable.ErrTooLarge):
		return nil, bad("is larger than 1 MiB")
	case err != nil:
		return nil, fmt.Errorf("read result: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, nil
	}
	var res beeyard.Result
	if err := strict.Unmarshal(data, &res, strict.Options{MaxBytes: maxResultBytes}); err != nil {
		return nil, bad("is no result: " + err.Error())
	}
	if !beeyard.ValidText(res.Verdict) || !beeyard.ValidText(res.Reason) {
		return nil, bad("holds a NUL")
	}
	return &res, nil
}
