/** Who plays each fault of the table. */
import { findNamespaceObstacle } from '../../test/support/network-namespace.ts';
import type { Stage } from './play.ts';
import { outlastHeartbeats, pauseWorker, sendServersAway, sendTemporalAway } from './rows/away.ts';
import { cancelRuns } from './rows/cancels.ts';
import { blackholeInstances, closePorts, killInstances, refuseEverything } from './rows/instances.ts';
import { killEverythingInTurn, killServers, killWorkers, restartPostgres } from './rows/killed-parts.ts';
import { answerMegabytes, runLargeDags } from './rows/large.ts';
import { loseAnswers } from './rows/lost-answers.ts';
import { endServersUnderLoad, restartInTurn } from './rows/orderly.ts';
import { silenceWebhook } from './rows/webhooks.ts';
import type { FaultName } from './table.ts';
import type { Verdict } from './verdict.ts';

export const plays: Readonly<Record<FaultName, (stage: Stage) => Promise<Verdict>>> = {
  'worker-killed': killWorkers,
  'server-killed': killServers,
  'postgres-restarted': restartPostgres,
  'answers-lost': loseAnswers,
  'temporal-away': sendTemporalAway,
  'temporal-silent': outlastHeartbeats,
  'instance-killed': killInstances,
  'instance-blackholed': blackholeInstances,
  'instance-closing': closePorts,
  'api-away': sendServersAway,
  'worker-paused': pauseWorker,
  'large-dags': runLargeDags,
  'large-outputs': answerMegabytes,
  cancels: cancelRuns,
  'rolling-restart': restartInTurn,
  sigterm: endServersUnderLoad,
  'everyone-503': refuseEverything,
  'webhook-silent': silenceWebhook,
  'parts-in-turn': killEverythingInTurn,
};

/** Why a fault cannot be played on this machine, or null. */
export function findObstacle(name: FaultName): string | null {
  return name === 'instance-blackholed' ? findNamespaceObstacle() : null;
}
