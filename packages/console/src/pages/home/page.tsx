import type { ReactElement } from 'react';
import { PageHead } from '../../shared/parts.tsx';
import { FailedLately } from './failed-lately.tsx';
import { FleetTrouble } from './fleet-trouble.tsx';
import { OpenLongest } from './open-longest.tsx';
import { HealthOfPipelines } from './pipeline-health.tsx';
import { Today } from './today.tsx';
import { UnderWay } from './under-way.tsx';
import { WaitingForMe } from './waiting-for-me.tsx';

/** Open reviews first, then failures, open runs, costs, and problems of the fleet. */
export function HomePage(): ReactElement {
  return (
    <>
      <PageHead title="Home" />
      <div className="grid items-start gap-4 xl:grid-cols-[minmax(0,1fr)_22rem]">
        <div className="flex min-w-0 flex-col gap-4">
          <WaitingForMe />
          <FailedLately />
          <UnderWay />
        </div>
        <div className="flex min-w-0 flex-col gap-4">
          <Today />
          <HealthOfPipelines />
          <OpenLongest />
          <FleetTrouble />
        </div>
      </div>
    </>
  );
}
