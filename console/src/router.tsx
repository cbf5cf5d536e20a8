/** Every address of the page, with its search parameters; the code of a page is loaded when it is first opened. */
import type { QueryClient } from '@tanstack/react-query';
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from '@tanstack/react-router';
import { readProject } from './api/project.ts';
import { runGraphQuery, runQuery } from './api/runs.ts';
import { BrokenPage } from './layout/broken-page.tsx';
import { NotFound } from './layout/not-found.tsx';
import { Root } from './layout/root.tsx';
import * as searches from './searches.ts';

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
    component: lazyRouteComponent(() => import('./pages/home/page.tsx'), 'HomePage'),
  }),
  createRoute({
    ...at('/login'),
    component: lazyRouteComponent(() => import('./pages/login/page.tsx'), 'LoginPage'),
  }),
  createRoute({
    ...at('/runs'),
    validateSearch: searches.runsSearch,
    component: lazyRouteComponent(() => import('./pages/runs/page.tsx'), 'RunsPage'),
  }),
  createRoute({
    ...at('/runs/$runId'),
    validateSearch: searches.runSearch,
    loader: ({ params: { runId }, context: { queries } }) => beginRun(queries, runId),
    component: lazyRouteComponent(() => import('./pages/run/page.tsx'), 'RunPage'),
  }),
  createRoute({
    ...at('/runs/$runId/compare/$otherId'),
    component: lazyRouteComponent(() => import('./pages/compare/page.tsx'), 'ComparePage'),
  }),
  createRoute({
    ...at('/reviews'),
    validateSearch: searches.reviewsSearch,
    component: lazyRouteComponent(() => import('./pages/reviews/page.tsx'), 'ReviewsPage'),
  }),
  createRoute({
    ...at('/reviews/$reviewId'),
    component: lazyRouteComponent(() => import('./pages/review/page.tsx'), 'ReviewPage'),
  }),
  createRoute({
    ...at('/pipelines'),
    component: lazyRouteComponent(() => import('./pages/pipelines/page.tsx'), 'PipelinesPage'),
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
    component: lazyRouteComponent(() => import('./pages/pipeline/page.tsx'), 'PipelinePage'),
  }),
  createRoute({
    ...at('/pipelines/$name/edit'),
    validateSearch: searches.editSearch,
    component: lazyRouteComponent(() => import('./pages/edit/page.tsx'), 'EditPage'),
  }),
  createRoute({
    ...at('/capabilities'),
    component: lazyRouteComponent(() => import('./pages/capabilities/page.tsx'), 'CapabilitiesPage'),
  }),
  createRoute({
    ...at('/capabilities/$name'),
    validateSearch: searches.capabilitySearch,
    component: lazyRouteComponent(() => import('./pages/capability/page.tsx'), 'CapabilityPage'),
  }),
  createRoute({
    ...at('/skills'),
    component: lazyRouteComponent(() => import('./pages/skills/page.tsx'), 'SkillsPage'),
  }),
  createRoute({
    ...at('/skills/$skillId'),
    component: lazyRouteComponent(() => import('./pages/skill/page.tsx'), 'SkillPage'),
  }),
  createRoute({
    ...at('/costs'),
    validateSearch: searches.costsSearch,
    component: lazyRouteComponent(() => import('./pages/costs/page.tsx'), 'CostsPage'),
  }),
  createRoute({
    ...at('/costs/ledger'),
    validateSearch: searches.ledgerSearch,
    component: lazyRouteComponent(() => import('./pages/ledger/page.tsx'), 'LedgerPage'),
  }),
  createRoute({
    ...at('/schedules'),
    component: lazyRouteComponent(() => import('./pages/schedules/page.tsx'), 'SchedulesPage'),
  }),
  createRoute({
    ...at('/settings'),
    validateSearch: searches.settingsSearch,
    component: lazyRouteComponent(() => import('./pages/settings/page.tsx'), 'SettingsPage'),
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
