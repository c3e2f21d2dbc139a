/* request.h - a request, from its headers to the response */
#ifndef PROFIL_PROFIL_HTTP_REQUEST_H
#define PROFIL_PROFIL_HTTP_REQUEST_H

#include "connection.h"

/* MHD's callbacks for requests and their ends. @cls is the server. */
enum MHD_Result request_handle(void *cls, struct MHD_Connection *mhd, const char *url,
			       const char *method, const char *version, const char *data,
			       size_t *bytes, void **state);
void request_ended(void *cls, struct MHD_Connection *mhd, void **state,
		   enum MHD_RequestTerminationCode how);

/* End a suspended request: on its time limit, or because the reader has closed the connection. */
void request_expire(struct request *r);
void request_cancel(struct request *r);

/* The server's timer for second snapshots. */
int request_on_due(sd_event_source *source, uint64_t usec, void *server);

#endif
