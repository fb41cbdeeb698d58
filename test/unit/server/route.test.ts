import { describe, expect, it } from 'vitest';
import { ApiError, findRoute, type Route } from '../../../src/lib/server/route.ts';

const aRoute = (method: Route['method'], path: string): Route => ({
  ...{ method, path },
  handle: () => Promise.resolve({ status: 204 }),
});
const routes = [
  aRoute('GET', '/v1/jobs/:id'),
  aRoute('DELETE', '/v1/jobs/:id'),
  aRoute('POST', '/v1/jobs'),
  aRoute('GET', '/v1/logs/:app/:instance'),
];

describe('findRoute', () => {
  it.each([
    ['GET', '/v1/jobs/a', '/v1/jobs/:id', { id: 'a' }],
    ['DELETE', '/v1/jobs/a?x=/v1/logs/b/c', '/v1/jobs/:id', { id: 'a' }],
    ['POST', '/v1/jobs?', '/v1/jobs', {}],
    ['GET', '/v1/logs/shop/web%2F1', '/v1/logs/:app/:instance', { app: 'shop', instance: 'web/1' }],
    ['GET', '/v1/jobs/..', '/v1/jobs/:id', { id: '..' }],
    ['GET', '/v1/jobs/%2e%2e%2f%00%C3%A4', '/v1/jobs/:id', { id: '../\0ä' }],
    ['GET', '/v1/jobs/:id', '/v1/jobs/:id', { id: ':id' }],
    ['GET', '/v1/jobs/a+b', '/v1/jobs/:id', { id: 'a+b' }],
  ])('%s %s is for %s', (method, target, path, params) => {
    const found = findRoute(routes, method, target);
    expect([found.route.method, found.route.path, found.params]).toEqual([method, path, params]);
  });

  it.each([
    ['GET', '/', 404, '404 page not found', {}],
    ['GET', '', 404, '404 page not found', {}],
    ['GET', '*', 404, '404 page not found', {}],
    ['GET', '/v1/jobs/', 404, '404 page not found', {}],
    ['GET', '//v1/jobs/a', 404, '404 page not found', {}],
    ['GET', '/V1/jobs/a', 404, '404 page not found', {}],
    ['GET', '/v1/jobs/a/', 404, '404 page not found', {}],
    ['GET', '/v1%2Fjobs/a', 404, '404 page not found', {}],
    ['GET', 'http://127.0.0.1/v1/jobs/a', 404, '404 page not found', {}],
    ['GET', '/v1/jobs', 405, 'method not allowed', { allow: 'POST' }],
    ['HEAD', '/v1/jobs/a', 405, 'method not allowed', { allow: 'GET, DELETE' }],
    ['GET', '/v1/jobs/%', 400, 'the path has a part that cannot be decoded', {}],
    ['GET', '/v1/jobs/%ff', 400, 'the path has a part that cannot be decoded', {}],
  ])('%s %s is for nobody: %i', (method, target, status, message, headers) => {
    let thrown: unknown;
    try {
      findRoute(routes, method, target);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ApiError);
    expect(thrown).toMatchObject({ status, message, headers });
  });
});
