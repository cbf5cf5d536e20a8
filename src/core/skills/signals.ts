/** What is true of a step, as the signals by which skills recognise their place. */
export interface StepSurroundings {
  readonly capability: string;
  /** Version of the capability; null when no instance has said. */
  readonly capability_version: string | null;
  readonly pipeline: string;
  readonly step_id: string;
  readonly tags: readonly string[];
}

const majorVersion = /^v?(\d+)(?:[.+-]|$)/;

export function signalsOfStep(step: StepSurroundings): string[] {
  const major = majorVersion.exec(step.capability_version ?? '')?.[1];
  return [
    `cap:${step.capability}`,
    ...(major === undefined ? [] : [`cap:${step.capability}@${major}`]),
    `pipeline:${step.pipeline}`,
    `step:${step.step_id}`,
    ...step.tags.map((tag) => `tag:${tag}`),
  ];
}
