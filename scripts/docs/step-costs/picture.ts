import type { Page } from '../page.ts';
import type { Figures } from './figures.ts';
import { firstCallPanel, processorPanel } from './panels.ts';
import { drawSmallBars, smallBarsHeight } from './small-bars.ts';
import { drawPanel, heightOf } from './stacked-bars.ts';
import { toSvg } from './svg.ts';

const gap = 20;

export function createStepCostsPicture(figures: Figures): Page {
  const processor = processorPanel(figures);
  const firstCall = firstCallPanel(figures);
  const second = gap + heightOf(processor) + gap;
  const third = second + smallBarsHeight + gap;
  return {
    file: 'docs/pictures/what-a-step-costs.svg',
    text: toSvg({
      title: 'What a step costs',
      description:
        'Three panels of bars for Capstan with nothing set and queued, Temporal alone, Restate and DBOS: processor time of a step by process, time of a step, time to the first call by stage. The tables of the page have the same figures.',
      height: third + heightOf(firstCall) + gap - 14,
      shapes: [
        ...drawPanel(processor, gap),
        ...drawSmallBars(figures, second),
        ...drawPanel(firstCall, third),
      ],
    }),
  };
}
