package explore

// nightlyScenarios are the same meetings with one process more.
var nightlyScenarios = []Scenario{
	{
		Name: "two workers twice, two reapers, a crash",
		Actors: []Actor{
			{Role: worker, Times: 2, Outcomes: []outcome{succeeded, retried}, Art: true},
			{Role: worker, Outcomes: []outcome{succeeded, failedForGood}, Art: true},
			{Role: reaper, Times: 2}, {Role: reaper},
		},
		Pending: 1, Crashes: 2,
	},
	{
		Name: "slow single-shot claim, two reapers, a worker",
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{succeeded, retried, released}, Art: true, Single: true},
			{Role: worker, Outcomes: []outcome{failedForGood}},
			{Role: reaper}, {Role: reaper},
		},
		Pending: 1,
	},
	{
		Name: "slow single-shot claim, two reapers, an older reaper, a crash",
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{succeeded, retried}, Art: true, Single: true},
			{Role: worker}, {Role: reaper}, {Role: reaper}, {Role: olderReaper},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "follow-up, three finishers, an enqueue of it",
		Actors: []Actor{
			{Role: worker, Follow: true, Art: true}, {Role: worker},
			{Role: reaper}, {Role: reaper}, {Role: enqueuer, Task: taskF, Life: 6},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "every older program beside ours",
		Actors: []Actor{
			{Role: olderWorker, Outcomes: []outcome{succeeded, failedForGood}},
			{Role: olderReaper}, {Role: olderEnqueuer, Life: 2},
			{Role: worker, Times: 2, Outcomes: []outcome{succeeded, retried}}, {Role: reaper},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "three operations around a worker",
		Actors: []Actor{
			{Role: holder}, {Role: canceler}, {Role: resumer},
			{Role: worker, Outcomes: []outcome{succeeded, failedForGood}}, {Role: reaper, Times: 2},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "retry, two enqueues, a worker, a reaper",
		Actors: []Actor{
			{Role: retrier}, {Role: enqueuer, Life: 2}, {Role: enqueuer, Life: 3},
			{Role: worker, Outcomes: []outcome{succeeded, failedForGood}}, {Role: reaper},
		},
		Failed: 1, Crashes: 1,
	},
	{
		Name: "cancel of a running claim, two reapers",
		Actors: []Actor{
			{Role: canceler}, {Role: worker, Outcomes: []outcome{succeeded, retried}, Single: true},
			{Role: worker}, {Role: reaper}, {Role: reaper},
		},
		Pending: 1,
	},
	{
		Name: "a listing that is no snapshot, two reapers",
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{succeeded, retried}, Art: true, Single: true},
			{Role: worker}, {Role: reaper, Times: 2}, {Role: reaper},
		},
		Pending: 1, SplitListing: true,
	},
	{
		Name: "power cut loses and doubles names, two reapers",
		Actors: []Actor{
			{Role: worker, Outcomes: []outcome{succeeded, retried}},
			{Role: worker, Times: 2, Late: true, Outcomes: []outcome{succeeded, retried}},
			{Role: reaper, Times: 2, Late: true}, {Role: reaper, Late: true},
		},
		Pending: 1, Reboots: 1, CutLoses: true, CutDoubles: true,
	},
	{
		Name: "two lives with an artifact each, two reapers, a crash",
		Actors: []Actor{
			{Role: olderEnqueuer, Life: 2},
			{Role: worker, Art: true}, {Role: worker, Art: true},
			{Role: reaper}, {Role: reaper},
		},
		Pending: 1, Crashes: 1,
	},
	{
		Name: "three lives, a reaper, a crash",
		Actors: []Actor{
			{Role: olderEnqueuer, Life: 2}, {Role: olderEnqueuer, Life: 3},
			{Role: worker, Times: 2, Outcomes: []outcome{succeeded, failedForGood}},
			{Role: worker, Outcomes: []outcome{succeeded, retried}}, {Role: reaper},
		},
		Pending: 1, Crashes: 1,
	},
}
