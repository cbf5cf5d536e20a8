import type { ReactElement } from 'react';
import { PageHead } from '../../shared/parts.tsx';
import { FailedLately } from './failed-lately.tsx';
import { FleetTrouble } from './fleet-trouble.tsx';
import { OpenLongest } from './open-longest.tsx';
import { HealthOfPipelines } from './pipeline-health.tsx';
import { Today } from './today.tsx';
import { UnderWay } from './under-way.tsx';
import { WaitingForMe } from './waiting-for-me.tsx';

/** Open reviews first, then failures, open runs, costs, and problems of the fleet. In one column costs come before runs. */
export function HomePage(): ReactElement {
  return (
    <>
      <PageHead title="Home" />
      <div className="flex flex-col gap-4 xl:grid xl:grid-cols-[minmax(0,1fr)_22rem] xl:items-start">
        <div className="flex min-w-0 flex-col gap-4 max-xl:contents">
          <WaitingForMe />
          <FailedLately />
          <div className="max-xl:order-1">
            <UnderWay />
          </div>
        </div>
        <div className="flex min-w-0 flex-col gap-4 max-xl:contents">
          <Today />
          <HealthOfPipelines />
          <div className="flex flex-col gap-4 max-xl:order-1">
            <OpenLongest />
            <FleetTrouble />
          </div>
        </div>
      </div>
    </>
  );
}
