/** Where the code counts. Who counts does not know who reads it; switched off, all of it does nothing. */
import type { CounterName, GaugeName, HistogramName, LabelsOf } from './metric-table.ts';

/** One value of a metric. */
export interface Sample<Name extends GaugeName> {
  readonly labels: LabelsOf<Name>;
  readonly value: number;
}

export interface Metrics {
  /** Whether anybody may read it: what only counts need not be done for nobody. */
  readonly isOn: boolean;
  add<Name extends CounterName>(name: Name, labels: LabelsOf<Name>, by?: number): void;
  observe<Name extends HistogramName>(name: Name, labels: LabelsOf<Name>, value: number): void;
  set<Name extends GaugeName>(name: Name, labels: LabelsOf<Name>, value: number): void;
  /** In place of all values that the gauge had; those whose labels are equal are added up. */
  replace<Name extends GaugeName>(name: Name, samples: readonly Sample<Name>[]): void;
  /** To be done before each scrape: what fails there leaves the others alone. */
  onScrape(refresh: () => void | Promise<void>): void;
}

function nothing(): void {
  // Nobody reads it.
}

export const noMetrics: Metrics = {
  isOn: false,
  add: nothing,
  observe: nothing,
  set: nothing,
  replace: nothing,
  onScrape: nothing,
};
