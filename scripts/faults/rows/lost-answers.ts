/** Work whose answer did not arrive: answers of Postgres and of instances that are lost with their connections. */
import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from '../../../test/support/wait.ts';
import { playUnderLoad, type Stage } from '../play.ts';
import { atLeast, joinVerdicts, type Verdict } from '../verdict.ts';

const share = 0.05;

export function loseAnswers(stage: Stage): Promise<Verdict> {
  const { postgres, isLong } = stage;
  const [count, pace] = isLong ? [500, 4] : [60, 4];
  return playUnderLoad(
    stage,
    { name: 'answers-lost', count, pace, tries: 6 },
    {
      disturb: async ({ fleet, isOver }) => {
        let cut = 0;
        fleet.decide(() => {
          if (Math.random() >= share) return 'answer';
          cut += 1;
          return 'cut';
        });
        const before = postgres.answersLost();
        postgres.loseAnswers(share);
        try {
          await waitFor('all to be submitted', isOver, 600_000);
          await sleep(2_000);
        } finally {
          postgres.loseAnswers(0);
          fleet.decide(() => 'answer');
        }
        return joinVerdicts([
          atLeast('answers of Postgres lost', postgres.answersLost() - before, 1),
          atLeast('answers of instances lost', cut, 1),
        ]);
      },
    },
  );
}
