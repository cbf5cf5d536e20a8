/**
 * Writes docs/reference/ from the code it describes, what docs/what-a-step-costs.md, README.md and bench/README.md show from
 * the figures of the benches, and the pictures of docs/contributing/states.md and packages/core/README.md from the machines. With `--check` it writes nothing and exits 1 when a
 * file is not what it would write.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { readRouterFigures, toGatewayTable, toRouterFigures } from '../bench/router/figures.ts';
import { createApiPage } from './docs/api-page.ts';
import { createCliPage } from './docs/cli-page.ts';
import { createConfigurationPage } from './docs/configuration-page.ts';
import { createConformancePage } from './docs/conformance-page.ts';
import { createErrorsPage } from './docs/errors-page.ts';
import { createExpressionsPage } from './docs/expressions-page.ts';
import { createFaultsPage } from './docs/faults-page.ts';
import { createModelFieldsPage } from './docs/model-fields-page.ts';
import { fillPage, generateCommand, type Page } from './docs/page.ts';
import { createStatesPages } from './docs/states/page.ts';
import { readFigures } from './docs/step-costs/figures.ts';
import { createStepCostsPage } from './docs/step-costs/page.ts';
import { createStepCostsPicture } from './docs/step-costs/picture.ts';
import { createDashboardFile } from './docs/telemetry/dashboard.ts';
import { createAlertsPage, createMetricsPage } from './docs/telemetry/pages.ts';
import { createRulesFiles } from './docs/telemetry/rules-files.ts';
import { readFaultFigures } from './faults/figures.ts';

function toPath({ file }: Page): string {
  return fileURLToPath(new URL(`../${file}`, import.meta.url));
}

async function isCurrent(page: Page): Promise<boolean> {
  return (await readFile(toPath(page), 'utf8').catch(() => null)) === page.text;
}

const figures = readFigures();
const routerFigures = readRouterFigures();
const pages: readonly Page[] = [
  createApiPage(),
  await createCliPage(),
  createConfigurationPage(),
  createConformancePage(),
  createErrorsPage(),
  createExpressionsPage(),
  createFaultsPage(readFaultFigures()),
  createModelFieldsPage(),
  ...(await createStatesPages()),
  createStepCostsPage(figures),
  createStepCostsPicture(figures),
  fillPage('README.md', [['gateways', toGatewayTable(routerFigures)]]),
  fillPage('bench/README.md', [['router figures', toRouterFigures(routerFigures)]]),
  createMetricsPage(),
  createAlertsPage(),
  ...createRulesFiles(),
  createDashboardFile(),
];

const stale: Page[] = [];
for (const page of pages) if (!(await isCurrent(page))) stale.push(page);

if (process.argv.includes('--check')) {
  for (const { file } of stale) console.error(`${file} is not up to date: ${generateCommand}`);
  if (stale.length > 0) process.exitCode = 1;
} else {
  for (const page of stale) await writeFile(toPath(page), page.text);
  console.log(stale.length === 0 ? 'all up to date' : stale.map(({ file }) => `wrote ${file}`).join('\n'));
}
