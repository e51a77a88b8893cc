module beeyard

go 1.26
