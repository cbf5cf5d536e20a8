/** Every address of the page, with its search parameters; the code of a page is loaded when it is first opened. */
import type { QueryClient } from '@tanstack/react-query';
import { createRootRouteWithContext, createRoute, createRouter, redirect } from '@tanstack/react-router';
import { readProject } from './api/project.ts';
import { runGraphQuery, runQuery } from './api/runs.ts';
import { BrokenPage } from './layout/broken-page.tsx';
import { NotFound } from './layout/not-found.tsx';
import { Root } from './layout/root.tsx';
import * as searches from './searches.ts';
import { latePart } from './shared/late-part.tsx';

interface RouterContext {
  readonly queries: QueryClient;
}

const root = createRootRouteWithContext<RouterContext>()({ component: Root, notFoundComponent: NotFound });

function at<const Path extends string>(path: Path) {
  return { getParentRoute: () => root, path } as const;
}

const routes = [
  createRoute({
    ...at('/'),
    component: latePart(() => import('./pages/home/page.tsx'), 'HomePage'),
  }),
  createRoute({
    ...at('/login'),
    component: latePart(() => import('./pages/login/page.tsx'), 'LoginPage'),
  }),
  createRoute({
    ...at('/runs'),
    validateSearch: searches.runsSearch,
    component: latePart(() => import('./pages/runs/page.tsx'), 'RunsPage'),
  }),
  createRoute({
    ...at('/runs/$runId'),
    validateSearch: searches.runSearch,
    loader: ({ params: { runId }, context: { queries } }) => beginRun(queries, runId),
    component: latePart(() => import('./pages/run/page.tsx'), 'RunPage'),
  }),
  createRoute({
    ...at('/runs/$runId/compare/$otherId'),
    component: latePart(() => import('./pages/compare/page.tsx'), 'ComparePage'),
  }),
  createRoute({
    ...at('/reviews'),
    validateSearch: searches.reviewsSearch,
    component: latePart(() => import('./pages/reviews/page.tsx'), 'ReviewsPage'),
  }),
  createRoute({
    ...at('/reviews/$reviewId'),
    component: latePart(() => import('./pages/review/page.tsx'), 'ReviewPage'),
  }),
  createRoute({
    ...at('/pipelines'),
    component: latePart(() => import('./pages/pipelines/page.tsx'), 'PipelinesPage'),
  }),
  createRoute({
    ...at('/pipelines/new'),
    beforeLoad: () => {
      throw redirect({ to: '/pipelines/$name/edit', params: { name: 'new' }, search: { example: true } });
    },
  }),
  createRoute({
    ...at('/pipelines/$name'),
    validateSearch: searches.pipelineSearch,
    component: latePart(() => import('./pages/pipeline/page.tsx'), 'PipelinePage'),
  }),
  createRoute({
    ...at('/pipelines/$name/edit'),
    validateSearch: searches.editSearch,
    component: latePart(() => import('./pages/edit/page.tsx'), 'EditPage'),
  }),
  createRoute({
    ...at('/capabilities'),
    component: latePart(() => import('./pages/capabilities/page.tsx'), 'CapabilitiesPage'),
  }),
  createRoute({
    ...at('/capabilities/$name'),
    validateSearch: searches.capabilitySearch,
    component: latePart(() => import('./pages/capability/page.tsx'), 'CapabilityPage'),
  }),
  createRoute({
    ...at('/calls'),
    validateSearch: searches.callsSearch,
    component: latePart(() => import('./pages/calls/page.tsx'), 'CallsPage'),
  }),
  createRoute({
    ...at('/decisions/$decisionId'),
    component: latePart(() => import('./pages/decision/page.tsx'), 'DecisionPage'),
  }),
  createRoute({
    ...at('/skills'),
    component: latePart(() => import('./pages/skills/page.tsx'), 'SkillsPage'),
  }),
  createRoute({
    ...at('/skills/$skillId'),
    component: latePart(() => import('./pages/skill/page.tsx'), 'SkillPage'),
  }),
  createRoute({
    ...at('/costs'),
    validateSearch: searches.costsSearch,
    component: latePart(() => import('./pages/costs/page.tsx'), 'CostsPage'),
  }),
  createRoute({
    ...at('/costs/ledger'),
    validateSearch: searches.ledgerSearch,
    component: latePart(() => import('./pages/ledger/page.tsx'), 'LedgerPage'),
  }),
  createRoute({
    ...at('/aliases'),
    component: latePart(() => import('./pages/aliases/page.tsx'), 'AliasesPage'),
  }),
  createRoute({
    ...at('/cache'),
    validateSearch: searches.cacheSearch,
    component: latePart(() => import('./pages/cache/page.tsx'), 'CachePage'),
  }),
  createRoute({
    ...at('/schedules'),
    component: latePart(() => import('./pages/schedules/page.tsx'), 'SchedulesPage'),
  }),
  createRoute({
    ...at('/settings'),
    validateSearch: searches.settingsSearch,
    component: latePart(() => import('./pages/settings/page.tsx'), 'SettingsPage'),
  }),
] as const;

/** The requests of a run's page start together, not one after another. */
function beginRun(queries: QueryClient, runId: string): void {
  // Before the first visit the project is unknown.
  if (readProject() === null) return;
  void import('./pages/run/graph-tab.tsx');
  void queries.prefetchQuery(runQuery(runId));
  void queries.prefetchQuery(runGraphQuery(runId));
}

export function createConsoleRouter(queries: QueryClient) {
  return createRouter({
    routeTree: root.addChildren(routes),
    context: { queries },
    basepath: '/ui',
    defaultPreload: 'intent',
    defaultErrorComponent: BrokenPage,
    scrollRestoration: true,
  });
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>;
  }
}
