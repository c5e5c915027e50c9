/**
 * Client of an svc service, for servers: identifications read and checked, webhooks verified, and a method for each
 * operation of the API. It needs nothing outside the JDK, from version 11 on.
 */
package svc.visitor.client;
