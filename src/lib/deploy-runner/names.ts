// Names of actions, services and nodes as deploy-runner's files have them. Only what matches becomes a path, a key or an argument.

/** An action's id, which is the name of its file. */
export const actionIdPattern = /^[a-z0-9][a-z0-9-]{0,63}$/;

/** Plain kebab-case. */
export const serviceNamePattern = /^(?=.{1,63}$)[a-z0-9]+(-[a-z0-9]+)*$/;

/** A node's name: it is a directory. */
export const nodeNamePattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/;

/** Whether redeploys of it have ids at all, which are `redeploy-NODE-SERVICE`; without a service, those of any. */
export function canNameActions(node: string, service = 'x'): boolean {
  return serviceNamePattern.test(service) && actionIdPattern.test(`redeploy-${node}-${service}`);
}

export function actionFileName(actionId: string): string {
  return `${actionId}.json`;
}

/** The id that a file's name stands for; undefined where it is no action's. */
export function parseActionFileName(name: string): string | undefined {
  const id = name.endsWith('.json') ? name.slice(0, -'.json'.length) : '';
  return actionIdPattern.test(id) ? id : undefined;
}

/** Of an action's file; real ones have a few hundred bytes. */
export const maxActionBytes = 64 * 1024;
