package explore

// scenarios are the configurations explored with every rule on. Each is small
// enough to be finished, and has the processes whose steps can meet badly.
var scenarios = []Scenario{
	{
		Name: "two workers, a reaper, a crash",
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{succeeded, retried}, Art: true},
			{Role: worker, Outcomes: []outcome{succeeded}, Art: true},
			{Role: reaper, Times: 2},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "slow single-shot claim, two reapers",
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{succeeded, released}, Art: true, Single: true},
			{Role: reaper}, {Role: reaper},
		},
		Pending: 1,
	},
	{
		Name: "a worker that outlives its claim, an older reaper",
		Actors: []Actor{
			{Role: worker, Times: 2, Outcomes: []outcome{succeeded, retried}, Single: true},
			{Role: olderReaper},
			{Role: reaper},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "follow-up, two finishers, a worker for it",
		Actors: []Actor{
			{Role: worker, Follow: true},
			{Role: worker},
			{Role: reaper, Times: 1},
			{Role: enqueuer, Task: taskF, Life: 6},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "two enqueues of one id, a worker",
		Actors: []Actor{
			{Role: enqueuer, Life: 1}, {Role: enqueuer, Life: 2},
			{Role: worker, Times: 2, Outcomes: []outcome{succeeded, retried, failedForGood}},
		},
		Crashes: 1,
	},
	{
		Name: "retry out of failed, an enqueue, a worker",
		Actors: []Actor{
			{Role: retrier}, {Role: enqueuer, Life: 2},
			{Role: worker, Outcomes: []outcome{succeeded, failedForGood}},
			{Role: reaper},
		},
		Failed: 1, Crashes: 1,
	},
	{
		Name: "an older enqueue runs a done id again",
		Actors: []Actor{
			{Role: olderEnqueuer, Life: 2},
			{Role: worker, Times: 2, Outcomes: []outcome{succeeded, failedForGood}},
			{Role: worker, Outcomes: []outcome{succeeded, retried}},
			{Role: reaper},
		},
		Done: 1,
	},
	{
		Name: "two lives run at once",
		Actors: []Actor{
			{Role: olderEnqueuer, Life: 2},
			{Role: worker, Outcomes: []outcome{succeeded}},
			{Role: worker, Outcomes: []outcome{succeeded, retried}},
			{Role: reaper},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "older worker and reaper beside ours",
		Actors: []Actor{
			{Role: olderWorker, Outcomes: []outcome{succeeded, failedForGood}},
			{Role: olderReaper},
			{Role: worker, Outcomes: []outcome{succeeded, retried}},
			{Role: reaper},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "restart after a settle, an older life meanwhile",
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{succeeded, retried}},
			{Role: olderEnqueuer, Life: 2, Late: true},
			{Role: olderWorker, Late: true},
			{Role: reaper, Times: 2, Late: true},
		},
		Pending: 1, Reboots: 1,
	},
	{
		Name: "a finish that fails in a worker that lives on",
		Actors: []Actor{
			{Role: worker, Times: 2, Outcomes: []outcome{succeeded, retried}, Art: true},
			{Role: reaper}, {Role: reaper},
		},
		Pending: 1, Faults: 1,
	},
	{
		Name: "hold, resume and cancel around a worker",
		Actors: []Actor{
			{Role: holder}, {Role: canceler},
			{Role: worker, Outcomes: []outcome{succeeded, retried}},
			{Role: reaper},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "cancel or resume of a held task, a crash",
		Actors: []Actor{
			{Role: canceler}, {Role: resumer}, {Role: worker}, {Role: reaper},
		},
		Held: 1, Crashes: 1,
	},
	{
		Name: "power cut loses a record or an artifact, two reapers",
		Actors: []Actor{
			{Role: worker, Art: true},
			{Role: worker, Late: true},
			{Role: reaper, Late: true}, {Role: reaper, Late: true},
		},
		Pending: 1, Reboots: 1, CutLoses: true,
	},
	{
		Name: "power cut brings an old name back",
		Actors: []Actor{
			{Role: retrier}, {Role: worker, Outcomes: []outcome{succeeded, retried}},
			{Role: worker, Times: 3, Late: true},
			{Role: reaper, Times: 2, Late: true},
		},
		Failed: 1, Reboots: 1, CutDoubles: true,
	},
	{
		Name: "power cut brings an old name back, claimed twice",
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{succeeded, retried}},
			{Role: worker, Times: 2, Late: true, Outcomes: []outcome{succeeded, retried}},
			{Role: worker, Times: 2, Late: true},
			{Role: reaper, Times: 2, Late: true},
		},
		Pending: 1, Reboots: 1, CutDoubles: true,
	},
	{
		Name: "two lives with an artifact each, a crash",
		Actors: []Actor{
			{Role: olderEnqueuer, Life: 2},
			{Role: worker, Art: true}, {Role: worker, Art: true},
			{Role: reaper},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "three lives",
		Actors: []Actor{
			{Role: olderEnqueuer, Life: 2}, {Role: olderEnqueuer, Life: 3},
			{Role: worker, Outcomes: []outcome{succeeded, failedForGood}},
			{Role: worker, Outcomes: []outcome{succeeded, failedForGood}},
			{Role: worker},
		},
		Done: 1,
	},
	{
		Name: "cancel of a running claim",
		Actors: []Actor{
			{Role: canceler}, {Role: worker, Outcomes: []outcome{succeeded, retried}, Single: true},
			{Role: worker}, {Role: reaper},
		},
		Pending: 1,
	},
	{
		Name: "a listing that is no snapshot",
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{succeeded, retried}, Art: true, Single: true},
			{Role: worker}, {Role: reaper, Times: 2},
		},
		Pending: 1, SplitListing: true,
	},
	{
		Name: "older enqueue and worker beside ours",
		Actors: []Actor{
			{Role: olderEnqueuer, Life: 2}, {Role: olderWorker, Times: 2, Outcomes: []outcome{succeeded, failedForGood}},
			{Role: worker, Outcomes: []outcome{succeeded, retried}},
			{Role: reaper},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "backoff and promotion",
		Actors: []Actor{
			{Role: worker, Times: 2, Outcomes: []outcome{succeeded, retried}, Backoff: true},
			{Role: promoter}, {Role: enqueuer, Life: 2}, {Role: reaper},
		},
		Pending: 1, Crashes: 1,
	},
}
