module svc.internal/svc

go 1.24
