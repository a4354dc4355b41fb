package chaos

// Scenarios returns all scenarios, in the order of the table in docs/reliability.md.
func Scenarios() []Scenario {
	return []Scenario{
		orchestratorKill, failover, handover, workerKill, workerStop, natsKill, leaderKill, reconnectHerd,
		partitionMinority, partitionMajority, serverGone, orchestratorCutOff, purgeSteps, deleteConsumer, storeFull, diskFull,
		largeResults,
		zombie, registryChange, rollback,
		powerCutDefault, powerCutAlways, powerCutAlwaysOne, poisonStep, cancelRace, deadlineRace, rollingUpgrade, upgradeByTheBook,
		sealedBeside, planBombs,
	}
}
